/// The script of the page. All data becomes text nodes, never HTML: the page's policy makes the browser refuse anything else.
enum PageScript {
    static let text = #"""
        'use strict';

        // The name under which the server knows this page; its actions end with the page.
        const page = Array.from(crypto.getRandomValues(new Uint32Array(3)), n => n.toString(36)).join('');
        const $ = id => document.getElementById(id);
        const ROW = 28;

        let overview = { subjects: [], controls: {} };
        let current = null;                 // the id of the shown subject
        let table = { total: 0, columns: [], rows: new Map(), request: 0 };
        let cursor = -1;                    // the index of the selected row
        let wanted = -1;                    // the index of a row to select once it is loaded
        let selected = null;                // the id of the selected row
        let notice = '';                    // the failure of the last action
        let sought = null;                  // tells the row to select once the rows are loaded
        let shownItem = '';                 // the record that the details show, to leave it alone while it stays the same

        // Makes an element with text, a class, and children.
        function make(tag, text, name, ...children) {
          const element = document.createElement(tag);
          if (text !== null && text !== undefined) element.textContent = text;
          if (name) element.className = name;
          element.append(...children);
          return element;
        }

        function duration(ms) {
          const size = Math.abs(ms), sign = ms < 0 ? '−' : '';
          if (size < 1000) return `${sign}${Math.round(size)} ms`;
          if (size < 60e3) return `${sign}${(size / 1000).toFixed(size < 10e3 ? 1 : 0)} s`;
          if (size < 3600e3) return `${sign}${Math.floor(size / 60e3)} min${size % 60e3 < 1000 ? '' : ` ${Math.floor(size / 1000) % 60} s`}`;
          if (size < 86400e3) return `${sign}${(size / 3600e3).toFixed(1)} h`;
          return `${sign}${(size / 86400e3).toFixed(1)} d`;
        }

        async function get(path, parameters) {
          const response = await fetch(`${path}?${new URLSearchParams(parameters)}`, { cache: 'no-store' });
          if (!response.ok) throw Object.assign(new Error(await response.text()), { status: response.status });
          return response.json();
        }

        let acting = 0;                     // the actions on their way
        let revision = 0;                   // the state of the controls after the last action; older news say nothing about it

        async function act(action, more) {
          acting += 1;
          try {
            const body = JSON.stringify({ page, action, ...more });
            const response = await fetch('act', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
            revision = Math.max(revision, Number(response.headers.get('Revision')));
            notice = response.ok ? '' : `The action failed: ${await response.text()}.`;
            return response.ok;
          } catch (error) {
            notice = 'The action failed: the program does not respond.';
            return false;
          } finally {
            acting -= 1;
            showControls();
            refreshSoon();
          }
        }

        // MARK: Events

        let source = null, errors = 0;

        function connect() {
          source?.close();
          source = new EventSource(`events?page=${page}`);
          source.addEventListener('news', event => {
            errors = 0;
            connection('live', 'live');
            const news = JSON.parse(event.data);
            overview = news.overview;
            timelineArrived(news.timeline);
            showSubjects();
            showControls();
            refreshSoon();
          });
          // A response ends after its events, which is an error to the browser; two in a row mean that the server is gone.
          source.onerror = () => {
            errors += 1;
            if (source.readyState === EventSource.CLOSED) {
              connection('lost', 'refused');
              setTimeout(connect, 3000);
            } else if (errors > 1) connection('lost', 'program has ended');
          };
        }

        function connection(kind, text) {
          $('connection').className = `state ${kind}`;
          if ($('connection').textContent !== text) $('connection').textContent = text;
        }

        addEventListener('pagehide', () => {
          source?.close();
          // No beacon: its `Origin` would be null under the page's referrer policy.
          fetch('act', { method: 'POST', body: JSON.stringify({ page, action: 'close' }), keepalive: true }).catch(() => {});
        });
        addEventListener('pageshow', event => { if (event.persisted) connect(); });

        // MARK: Subjects

        const kinds = { store: 'Stores', host: 'Hosts', texts: 'Texts', sync: 'Synchronizers', outbox: 'Outboxes' };

        function showSubjects() {
          const list = $('subjects');
          const known = new Map(Array.from(list.querySelectorAll('button'), button => [Number(button.dataset.id), button]));
          const isNew = overview.subjects.some(subject => !known.has(subject.id)) || known.size !== overview.subjects.length;
          if (isNew) {
            list.replaceChildren();
            for (const [kind, title] of Object.entries(kinds)) {
              const subjects = overview.subjects.filter(subject => subject.kind === kind);
              if (subjects.length) list.append(make('h2', title));
              for (const subject of subjects) {
                const button = make('button', null, '', make('span', subject.name, 'name'), make('span', '', 'number'), make('span', '', 'note'));
                button.type = 'button';
                button.dataset.id = subject.id;
                button.onclick = () => choose(subject.id);
                list.append(button);
                known.set(subject.id, button);
              }
            }
          }
          for (const subject of overview.subjects) {
            const button = known.get(subject.id);
            button.children[1].textContent = subject.count.toLocaleString('en');
            button.children[2].textContent = subject.note;
            button.children[0].classList.toggle('gone', subject.gone);
            button.setAttribute('aria-current', String(subject.id === current));
          }
          // The first one at the beginning, and after the program has attached the shown object again.
          const first = list.querySelector('button');
          if (first && !subjectOf(current)) choose(Number((named(title) ?? first).dataset.id));
        }

        // Returns the button of a subject by its name.
        const named = name => Array.from(document.querySelectorAll('#subjects button')).find(button => button.firstChild.textContent === name);
        let title = null;                   // the name of the shown subject

        const subjectOf = id => overview.subjects.find(subject => subject.id === id);

        function choose(id, text = '') {
          [current, sought] = [id, null];
          $('search').value = text;
          const kind = subjectOf(id)?.kind;
          title = subjectOf(id)?.name ?? '';
          $('search').placeholder = kind === 'store' ? 'Search keys' : 'Search';
          $('filter').value = 'all';
          $('filterField').hidden = kind !== 'store';
          $('failNext').hidden = kind !== 'store' && kind !== 'host';
          $('failNext').textContent = kind === 'host' ? 'Fail next exchange' : 'Fail next fetch';
          $('title').textContent = title;
          closeItem();
          reload();
          showSubjects();
        }

        function showControls() {
          const controls = overview.controls, lines = notice ? [notice] : [];
          // The server ends the actions of a page that it believes closed, and the page shows this.
          if (!acting && controls.revision >= revision) {
            $('offline').setAttribute('aria-pressed', String(controls.own.offline));
            $('delay').value = String(controls.own.delay);
          }
          if (controls.offline) lines.push('Offline: every fetch fails.');
          if (controls.delay) lines.push(`Each fetch waits ${duration(controls.delay)}.`);
          if (controls.failing) lines.push(controls.failing === 1 ? 'The chosen next fetch fails.' : `${controls.failing} chosen next fetches fail.`);
          if (controls.offline || controls.delay || controls.failing) lines.push('This ends when the page is closed.');
          const text = lines.join(' ');
          if ($('warning').textContent !== text) $('warning').textContent = text;
          $('warning').hidden = !text;
        }

        // MARK: The table

        // A new subject, search or filter.
        function reload() {
          table = { total: 0, columns: [], rows: new Map(), request: table.request + 1 };
          [cursor, wanted] = [-1, -1];
          $('table').scrollTop = 0;
          $('canvas').replaceChildren();
          drawn.clear();
          load();
        }

        function visible() {
          const first = Math.max(0, Math.floor($('table').scrollTop / ROW) - 4);
          return [first, Math.min(200, Math.ceil($('table').clientHeight / ROW) + 8)];
        }

        let isLoading = false, loadsAgain = false;

        // Loads the visible rows; at most one request at a time.
        async function load() {
          if (current === null) return;
          if (isLoading) { loadsAgain = true; return; }
          isLoading = true;
          const request = table.request, [from, count] = visible();
          try {
            const list = await get('list', { subject: current, from, count, q: $('search').value, filter: $('filter').value });
            if (request === table.request) {
              table.total = list.total;
              table.columns = list.columns;
              // Rows far away are loaded again when they are scrolled to.
              if (table.rows.size > 2000) table.rows.clear();
              list.rows.forEach((row, index) => table.rows.set(from + index, row));
              for (const index of table.rows.keys()) if (index >= table.total) table.rows.delete(index);
              // Live keys come first, so the selected row moves when its key becomes live.
              const place = list.rows.findIndex(row => row[0] === selected);
              if (place >= 0 && wanted < 0) moved(from + place);
              draw();
              const found = sought ? list.rows.findIndex(sought) : -1;
              if (found >= 0) select(from + found); else if (wanted >= 0) select(wanted);
              sought = null;
            }
          } catch (error) {
            // The server is gone, or the subject; the events say which.
          }
          isLoading = false;
          if (loadsAgain) { loadsAgain = false; load(); }
        }

        const widths = { text: [90, '1fr'], number: [70, '76px'], age: [80, '92px'], phase: [92, '104px'] };
        const drawn = new Map();            // the row elements by their index

        // Returns the columns that fit, and their layout.
        function layout() {
          let room = $('table').clientWidth - 32;
          const shown = [];
          table.columns.forEach((column, index) => {
            const least = index === 0 ? 130 : widths[column.kind][0];
            if (index > 0 && room < least + 14) { room = -1; return; }
            room -= least + 14;
            shown.push(index);
          });
          const template = shown.map(index => index === 0 ? 'minmax(130px, 2.4fr)' : index === shown.length - 1 && table.columns[index].kind === 'text'
            ? 'minmax(90px, 2fr)' : table.columns[index].kind === 'text' ? 'minmax(90px, 1fr)' : widths[table.columns[index].kind][1]);
          return [shown, template.join(' ')];
        }

        function draw() {
          const [shown, template] = layout();
          const canvas = $('canvas');
          canvas.style.height = `${table.total * ROW}px`;
          $('columns').style.gridTemplateColumns = template;
          $('columns').replaceChildren(...shown.map(index => {
            const column = table.columns[index];
            const cell = make('span', column.title, column.kind === 'number' || column.kind === 'age' ? 'right' : '');
            cell.setAttribute('role', 'columnheader');
            return cell;
          }));
          const [first, count] = visible();
          for (const [index, element] of drawn) {
            if (index < first || index >= first + count || !table.rows.has(index)) { element.remove(); drawn.delete(index); }
          }
          for (let index = first; index < Math.min(first + count, table.total); index++) {
            const row = table.rows.get(index);
            if (!row) continue;
            let element = drawn.get(index);
            if (!element) {
              element = make('div', null, index % 2 ? 'row odd' : 'row');
              element.setAttribute('role', 'row');
              element.id = `row${index}`;
              element.style.top = `${index * ROW}px`;
              element.onclick = () => select(index);
              drawn.set(index, element);
              canvas.append(element);
            }
            element.style.gridTemplateColumns = template;
            element.setAttribute('aria-selected', String(row[0] === selected));
            element.setAttribute('aria-rowindex', String(index + 2));
            fill(element, row, shown);
          }
          $('table').setAttribute('aria-rowcount', String(table.total + 1));
          const subject = subjectOf(current);
          // Without columns, the list has not arrived yet, so its length is unknown.
          const isKnown = table.columns.length > 0 || subject?.gone;
          $('count').textContent = !isKnown ? '' : table.total === 1 ? '1 row' : `${table.total.toLocaleString('en')} rows`;
          $('empty').hidden = table.total > 0 || !isKnown;
          $('empty').textContent = subject?.gone ? 'The program has released this object.'
            : $('search').value || $('filter').value !== 'all' ? 'No row matches.' : 'Nothing here yet.';
        }

        function fill(element, row, shown) {
          shown.forEach((column, place) => {
            const { kind } = table.columns[column], value = row[column + 1];
            let text = String(value ?? ''), name = '';
            if (kind === 'phase') name = text ? `phase ${text}` : '';
            if (kind === 'age') [text, name] = [value === null ? '–' : duration(value), 'right'];
            if (kind === 'number') name = value === 0 ? 'right zero' : 'right';
            let cell = element.children[place];
            if (!cell) { cell = make('span'); cell.setAttribute('role', 'gridcell'); element.append(cell); }
            if (cell.textContent !== text) { cell.textContent = text; cell.title = text; }
            if (cell.className !== name) cell.className = name;
          });
          while (element.children.length > shown.length) element.lastChild.remove();
        }

        let isScrolling = false;
        $('table').addEventListener('scroll', () => {
          if (isScrolling) return;
          isScrolling = true;
          requestAnimationFrame(() => { isScrolling = false; draw(); load(); });
        });
        addEventListener('resize', () => { draw(); load(); });

        let refresh = 0;
        function refreshSoon() {
          if (refresh) return;
          refresh = setTimeout(() => { refresh = 0; load(); loadItem(); }, 60);
        }
        // Ages grow although nothing happens.
        setInterval(() => { if (!document.hidden) refreshSoon(); }, 1000);
        document.addEventListener('visibilitychange', () => { if (!document.hidden) { drawSpans(); refreshSoon(); } });

        // MARK: The details

        // The selected row is at an index now.
        function moved(index) {
          cursor = index;
          $('table').setAttribute('aria-activedescendant', `row${index}`);
        }

        function select(index) {
          const row = table.rows.get(index);
          if (!row) return;
          [wanted, selected, shownItem] = [-1, row[0], ''];
          moved(index);
          $('item').classList.add('open');
          draw();
          loadItem();
        }

        function closeItem() {
          [selected, shownItem] = [null, ''];
          $('table').removeAttribute('aria-activedescendant');
          $('item').classList.remove('open');
          $('item').replaceChildren(make('p', 'Select a row to see its record.', 'empty'));
          draw();
        }

        async function loadItem() {
          if (selected === null) return;
          const [subject, row] = [current, selected];
          let item;
          try { item = await get('item', { subject, row }); } catch (error) {
            // Without a response, the last record stays visible.
            if (error.status !== 404) return;
            item = { title: 'This row is gone.', facts: [], record: null, links: [], actions: [] };
          }
          if (subject === current && row === selected) showItem(item);
        }

        const labels = { refresh: 'Refresh', invalidate: 'Invalidate', clear: 'Clear', fail: 'Fail next' };

        function showItem(item) {
          const facts = make('dl');
          for (const [name, value] of item.facts) {
            if (value === null && name !== 'expires in') continue;
            const isTime = name === 'age' || name === 'expires in' || name.startsWith('time');
            const detail = make('dd');
            const text = value === null ? 'never' : isTime ? duration(value) : String(value);
            detail.append(name === 'state' ? make('span', text, `phase ${text}`) : text);
            facts.append(make('dt', name), detail);
          }
          // The record stays as it is while it is the same, so that it keeps its scroll position and its selection.
          const record = JSON.stringify([item.title, item.record, item.links, item.actions]);
          if (record === shownItem) { $('item').querySelector('dl').replaceWith(facts); return; }
          shownItem = record;
          const top = make('div', null, 'top');
          const back = make('button', 'Back', 'back');
          back.type = 'button';
          back.onclick = () => { closeItem(); $('table').focus(); };
          top.append(back, make('h2', item.title));
          const actions = make('div', null, 'actions');
          // The actions stay those of the shown record while another one is loaded.
          const [subject, row] = [current, selected];
          for (const action of item.actions) {
            const button = make('button', labels[action] ?? action, action === 'clear' ? 'danger' : '');
            button.type = 'button';
            button.dataset.action = action;
            button.onclick = () => act(action, { subject, row });
            actions.append(button);
          }
          if (item.actions.length) top.append(actions);
          const parts = [top, facts];
          for (const link of item.links) {
            parts.push(make('h3', `Shows ${link.count} of ${link.store || 'another store'}`));
            parts.push(make('div', null, 'chips', ...link.keys.map(key => chip(link.store, key))));
          }
          const heading = item.json ? 'Record' : subjectOf(current)?.kind === 'store' ? 'Description' : 'Text';
          if (item.record !== null) parts.push(make('h3', heading), recordOf(item));
          $('item').replaceChildren(...parts);
        }

        // Returns a linked key, which leads to its own record if the page shows one store of that name.
        function chip(store, key) {
          const shown = overview.subjects.filter(subject => subject.kind === 'store' && subject.name === store && !subject.gone);
          if (shown.length !== 1) return make('span', key);
          const button = make('button', key);
          button.type = 'button';
          button.onclick = () => reveal(shown[0].id, key, isRowOf(key));
          return button;
        }

        // Finds the row of a key. The end of a long key is cut off, here earlier than in the table.
        const isRowOf = key => row => row[1] === key || key.endsWith('…') && row[1].startsWith(key.slice(0, -1));

        // Shows a subject, and selects a row of it.
        function reveal(subject, key, isRow) {
          choose(subject, key.replace(/…$/, ''));
          sought = isRow;
          $('table').focus();
        }

        // Colors names, texts and words of JSON.
        function recordOf(item) {
          const block = make('pre');
          block.tabIndex = 0;
          if (!item.json || item.record.length > 60000) { block.textContent = item.record; return block; }
          const pattern = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g;
          let last = 0;
          for (const match of item.record.matchAll(pattern)) {
            block.append(item.record.slice(last, match.index));
            const length = match[1] ? match[1].length : match[0].length;
            block.append(make('span', match[0].slice(0, length), match[2] ? 'name' : match[1] ? 'text' : 'word'));
            last = match.index + length;
          }
          block.append(item.record.slice(last));
          return block;
        }

        // MARK: The timeline

        const spans = new Map();            // by id, oldest first
        const spanRows = new Map();
        let serverNow = 0, arrivedAt = 0, pausedAt = null;

        function timelineArrived(timeline) {
          [serverNow, arrivedAt] = [timeline.now, performance.now()];
          for (const [id, subject, title, note, status, began, ended, parent] of timeline.spans) {
            spans.set(id, { id, subject, title, note, status, began, ended, parent });
          }
          while (spans.size > 1000) spans.delete(spans.keys().next().value);
          drawSpans();
        }

        let shownSpans = [];                // in the order of their rows
        let chosenSpan = null;              // the span that the keyboard has chosen

        // Newest first; below each fetch its exchanges in the order of their beginnings.
        function ordered(visible) {
          const ids = new Set(visible.map(span => span.id)), inner = new Map(), result = [];
          for (const span of visible) {
            if (ids.has(span.parent)) inner.set(span.parent, [...inner.get(span.parent) ?? [], span]);
          }
          const add = (span, depth) => {
            span.depth = depth;
            result.push(span);
            for (const other of inner.get(span.id) ?? []) add(other, depth + 1);
          };
          for (const span of visible.slice().reverse()) if (!ids.has(span.parent)) add(span, 0);
          return result;
        }

        function drawSpans() {
          const range = Number($('range').value), end = pausedAt ?? serverNow + performance.now() - arrivedAt, start = end - range;
          const visible = Array.from(spans.values()).filter(span => (span.ended ?? end) >= start && span.began <= end);
          shownSpans = ordered(visible).slice(0, 150);
          const shown = shownSpans;
          const ticks = Array.from({ length: 6 }, (_, index) => {
            const tick = make('span', index === 5 ? 'now' : `−${duration(range * (5 - index) / 5)}`);
            if (index === 5) tick.style.right = '0'; else tick.style.left = `${index * 20}%`;
            return tick;
          });
          $('axis').replaceChildren(...ticks);
          const ids = new Set(shown.map(span => span.id));
          for (const [id, row] of spanRows) if (!ids.has(id)) { row.remove(); spanRows.delete(id); }
          let before = null;
          for (const span of shown) {
            let row = spanRows.get(span.id);
            if (!row) {
              row = make('div', null, 'span', make('div', null, 'label', make('span', span.note.endsWith(' page') ? `${span.title} · ${span.note}` : span.title, 'what'), make('span', '', 'owner')),
                make('div', null, 'track', make('div', null, 'bar'), make('span', '', 'time')));
              row.setAttribute('role', 'option');
              row.id = `span${span.id}`;
              row.onclick = () => follow(span);
              spanRows.set(span.id, row);
            }
            if (before ? before.nextSibling !== row : $('spans').firstChild !== row) {
              before ? before.after(row) : $('spans').prepend(row);
            }
            before = row;
            const subject = subjectOf(span.subject);
            row.querySelector('.owner').textContent = subject?.name ?? '';
            row.firstChild.style.paddingLeft = `${Math.min(span.depth, 4) * 14}px`;
            row.setAttribute('aria-selected', String(span.id === chosenSpan));
            const left = Math.max(0, (span.began - start) / range), right = Math.min(1, ((span.ended ?? end) - start) / range);
            const bar = row.querySelector('.bar'), time = row.querySelector('.time');
            bar.className = `bar ${span.status} ${subject?.kind === 'host' ? 'exchange' : ''}`;
            bar.style.left = `${left * 100}%`;
            bar.style.width = `${Math.max(0, right - left) * 100}%`;
            const text = duration((span.ended ?? end) - span.began);
            time.textContent = span.status === 'ok' || span.status === 'running' ? text : `${text} · ${span.status}`;
            // On the side of the bar with more room.
            if (1 - right > left) { time.style.left = `${right * 100}%`; time.style.right = ''; } else { time.style.left = ''; time.style.right = `${(1 - left) * 100}%`; }
            row.title = `${span.title}\n${subject?.name ?? ''} · ${span.status} · ${text}${span.note ? `\n${span.note}` : ''}`;
          }
          $('spanCount').textContent = visible.length === 0 ? 'no fetch in this time'
            : visible.length > shown.length ? `newest ${shown.length} of ${visible.length}` : `${visible.length} in this time`;
        }

        // Shows the key of a fetch, or an exchange.
        function follow(span) {
          const subject = subjectOf(span.subject);
          if (!subject) return;
          // The rows of a host are its spans.
          if (subject.kind === 'host') reveal(subject.id, '', row => row[0] === span.id);
          else reveal(subject.id, span.title, isRowOf(span.title));
        }

        $('spans').addEventListener('keydown', event => {
          const steps = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
          const place = shownSpans.findIndex(span => span.id === chosenSpan);
          if (event.key in steps && shownSpans.length) {
            event.preventDefault();
            chosenSpan = shownSpans[Math.max(0, Math.min(shownSpans.length - 1, place + steps[event.key]))].id;
            drawSpans();
            $('spans').setAttribute('aria-activedescendant', `span${chosenSpan}`);
            $(`span${chosenSpan}`)?.scrollIntoView({ block: 'nearest' });
          }
          if (event.key === 'Enter' && place >= 0) { event.preventDefault(); follow(shownSpans[place]); }
        });

        setInterval(() => { if (!document.hidden && pausedAt === null) drawSpans(); }, 250);

        // MARK: Input

        let typing = 0;
        $('search').addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(reload, 120); });
        $('filter').addEventListener('change', reload);
        $('range').addEventListener('change', drawSpans);
        $('delay').addEventListener('change', () => act('delay', { value: Number($('delay').value) }));
        $('offline').addEventListener('click', async () => {
          const isOffline = $('offline').getAttribute('aria-pressed') !== 'true';
          if (await act('offline', { value: isOffline ? 1 : 0 })) $('offline').setAttribute('aria-pressed', String(isOffline));
        });
        $('failNext').addEventListener('click', () => act('fail', { subject: current }));
        $('pause').addEventListener('click', () => {
          pausedAt = pausedAt === null ? serverNow + performance.now() - arrivedAt : null;
          $('pause').setAttribute('aria-pressed', String(pausedAt !== null));
          drawSpans();
        });

        // Moves the selection, and scrolls to it.
        function move(to) {
          const index = Math.max(0, Math.min(table.total - 1, to));
          const area = $('table'), top = index * ROW;
          if (top < area.scrollTop) area.scrollTop = top;
          if (top + 2 * ROW > area.scrollTop + area.clientHeight) area.scrollTop = top + 2 * ROW - area.clientHeight;
          // A row that is not loaded yet is selected once it is.
          [cursor, wanted] = [index, index];
          if (table.rows.has(index)) select(index); else load();
        }

        $('table').addEventListener('keydown', event => {
          const page = Math.floor($('table').clientHeight / ROW) - 2;
          const steps = { ArrowDown: cursor + 1, ArrowUp: cursor - 1, PageDown: cursor + page, PageUp: cursor - page, Home: 0, End: table.total - 1 };
          if (event.key in steps) { event.preventDefault(); move(steps[event.key]); }
          if (event.key === 'Enter' && selected !== null) { event.preventDefault(); ($('item').querySelector('button:not(.back)') ?? $('item')).focus(); }
        });

        addEventListener('keydown', event => {
          const isTyping = event.target.matches('input, select');
          if (event.key === '/' && !isTyping) { event.preventDefault(); $('search').focus(); $('search').select(); }
          if (event.key === 'Escape') {
            if (document.activeElement === $('search') && $('search').value) { $('search').value = ''; reload(); } else closeItem();
            $('table').focus();
          }
        });

        connect();
        """#
}
