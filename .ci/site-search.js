
/* Full-text search: a button on every page, Ctrl-K or ⌘K, and a dialog. The index is loaded when the dialog opens first. */
(() => {
  const base = (typeof baseUrl === "string" ? baseUrl : "/").replace(/\/?$/, "/");
  // In lower case without accents, and with the words of names apart: “signOut” is “sign out”.
  const simple = (text) => text.replace(/([a-z0-9])(?=[A-Z])/g, "$1 ").normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  // “normalize” also finds “normalized” and “normalization”, and “likes” finds “like”.
  const stem = (word) => (word.length > 4 ? word.replace(/(ations?|ing|ed|es|e|s)$/, "") : word);

  let index, results = [], chosen = 0;

  async function load() {
    if (index) return;
    const response = await fetch(base + "search-index.json");
    if (!response.ok) throw new Error("HTTP status " + response.status);
    index = (await response.json()).map((entry) => ({
      ...entry,
      names: simple(entry.title + " " + entry.section),
      words: simple(entry.text),
    }));
  }

  /* How well an entry fits: 0 if one of the words is missing. Names count more than text, and articles more than symbols. */
  function score(entry, words, phrase) {
    let sum = 0;
    for (const { whole, start } of words) {
      const best = Math.max(
        whole.test(entry.names) ? 10 : start?.test(entry.names) ? 4 : 0, whole.test(entry.words) ? 3 : start?.test(entry.words) ? 1 : 0);
      if (best === 0) return 0;
      sum += best;
    }
    if (words.length > 1 && entry.words.includes(phrase)) sum += 8;
    if (entry.names.includes(phrase)) sum += 12;
    if (simple(entry.title) === phrase) sum += 20;
    if (entry.kind === "Article") sum += 6;
    return sum;
  }

  function find(query) {
    const phrase = simple(query.trim());
    const all = phrase.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
    const words = all.map((word, place) => ({
      word: stem(word),
      whole: new RegExp(`(?<![\\p{L}\\p{N}])${stem(word)}(ations?|ing|ed|es|e|s|d)?(?![\\p{L}\\p{N}])`, "u"),
      // The last word may be typed in part.
      start: place === all.length - 1 ? new RegExp(`(?<![\\p{L}\\p{N}])${stem(word)}`, "u") : undefined,
    }));
    if (!words.length) return { words, found: [] };
    const found = index
      .map((entry) => ({ entry, score: score(entry, words, phrase) }))
      .filter((result) => result.score > 0)
      .sort((a, b) => b.score - a.score || a.entry.title.length - b.entry.title.length)
      .slice(0, 40)
      .map((result) => result.entry);
    return { words, found };
  }

  function marked(text, words) {
    const pattern = words.map(({ word }) => `\\b${word}\\w*`).join("|");
    return text.split(new RegExp(`(${pattern})`, "giu")).map((part, place) => (place % 2 ? `<mark>${escaped(part)}</mark>` : escaped(part))).join("");
  }

  function excerpt(entry, words) {
    const text = entry.text;
    const place = text.search(new RegExp(words.map(({ word }) => `\\b${word}`).join("|"), "iu"));
    const start = place > 60 ? text.lastIndexOf(" ", place - 50) + 1 : 0;
    const end = text.length > start + 180 ? text.lastIndexOf(" ", start + 180) : text.length;
    return (start > 0 ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
  }

  const dialog = document.createElement("dialog");
  dialog.className = "site-search";
  dialog.setAttribute("aria-label", "Search the documentation");
  dialog.innerHTML =
    '<input type="search" placeholder="Search the documentation" aria-label="Search" role="combobox" aria-expanded="true" ' +
    'aria-controls="site-search-results" autocomplete="off" spellcheck="false"><p role="status"></p>' +
    '<ul id="site-search-results" role="listbox"></ul>';
  const [input, status, list] = dialog.children;

  function choose(number) {
    chosen = Math.max(0, Math.min(number, results.length - 1));
    [...list.children].forEach((item, place) => item.setAttribute("aria-selected", place === chosen));
    const item = list.children[chosen];
    if (!item) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", item.id);
    item.scrollIntoView({ block: "nearest" });
  }

  function show() {
    if (!index) return;
    const { words, found } = find(input.value);
    results = found;
    list.innerHTML = found
      .map((entry, number) =>
        `<li id="site-search-${number}" role="option"><a href="${escaped(base + entry.page)}" tabindex="-1">` +
        `<strong>${marked(entry.title, words)}</strong>${entry.section ? " › " + marked(entry.section, words) : ""}` +
        `<small>${escaped(entry.kind)}${entry.module && entry.module !== entry.title ? " · " + escaped(entry.module) : ""}</small>` +
        `<span>${marked(excerpt(entry, words), words)}</span></a></li>`)
      .join("");
    status.textContent = !words.length
      ? "Try “sign out”, “offline”, “expiry” or the name of a type."
      : found.length === 0 ? "Nothing found." : found.length === 40 ? "The 40 best results" : `${found.length} results`;
    choose(0);
  }

  async function open() {
    if (dialog.open) return;
    dialog.showModal();
    input.select();
    status.textContent = "Loading…";
    try {
      await load();
      show();
    } catch (error) {
      status.textContent = `The index could not be loaded (${error.message}). Reload the page.`;
    }
  }

  input.addEventListener("input", show);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter") list.children[chosen]?.querySelector("a").click();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "k" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    open();
  });

  const button = document.createElement("button");
  button.className = "site-search-button";
  button.type = "button";
  button.title = "Search (Ctrl-K or ⌘K)";
  button.setAttribute("aria-label", "Search the documentation");
  button.innerHTML = '<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><circle cx="6.5" cy="6.5" r="4.5" fill="none" ' +
    'stroke="currentColor" stroke-width="1.5"/><path d="M10 10l4.5 4.5" stroke="currentColor" stroke-width="1.5"/></svg><span>Search</span>';
  button.addEventListener("click", open);

  const begin = () => document.body.append(button, dialog);
  if (document.body) begin();
  else document.addEventListener("DOMContentLoaded", begin);
})();
