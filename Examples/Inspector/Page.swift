/// The page: one HTML file with its style and its script. It downloads nothing.
///
/// `{{nonce}}` is replaced for each response; the browser runs no script without it.
enum Page {
    static let html = """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Storehouse Inspector</title>
        <link rel="icon" href="data:,">
        <style nonce="{{nonce}}">
        \(PageStyle.css)
        </style>
        </head>
        <body>
        <header>
          <h1><span class="mark" aria-hidden="true"></span>Storehouse <span class="thin">Inspector</span></h1>
          <div class="search">
            <label class="hidden" for="search">Search</label>
            <input id="search" type="search" placeholder="Search keys" autocomplete="off" spellcheck="false">
            <kbd aria-hidden="true">/</kbd>
          </div>
          <div class="controls" role="group" aria-label="Network">
            <label class="field" for="delay"><span>Delay</span>
              <select id="delay">
                <option value="0">none</option><option value="300">300 ms</option><option value="1000">1 s</option>
                <option value="3000">3 s</option><option value="10000">10 s</option>
              </select></label>
            <button id="offline" type="button" aria-pressed="false">Go offline</button>
          </div>
          <p id="connection" class="state waiting" role="status">connecting</p>
        </header>
        <p id="warning" class="warning" role="alert" hidden></p>
        <main>
          <nav id="subjects" aria-label="Subjects"></nav>
          <section class="center" aria-label="Contents">
            <div class="heading">
              <h2 id="title">No subject</h2><span id="count" class="dim"></span>
              <button id="failNext" type="button" hidden>Fail next</button>
              <label class="field" id="filterField" for="filter"><span>Show</span>
                <select id="filter">
                  <option value="all">all keys</option><option value="live">live</option><option value="fetching">fetching</option>
                  <option value="failed">failed</option><option value="unsaved">unsaved</option><option value="expired">expired</option>
                </select></label>
            </div>
            <div id="table" role="grid" tabindex="0" aria-label="Rows" aria-readonly="true">
              <div id="columns" role="row" aria-rowindex="1"></div>
              <div id="canvas" role="rowgroup"></div>
              <p id="empty" class="empty">Nothing is attached yet.</p>
            </div>
            <div class="splitter"></div>
            <section class="waterfall" aria-label="Timeline">
              <div class="heading"><h2>Timeline</h2><span id="spanCount" class="dim"></span>
                <label class="field" for="range"><span>Last</span>
                  <select id="range"><option value="2000">2 s</option><option value="5000" selected>5 s</option><option value="15000">15 s</option>
                    <option value="60000">1 min</option><option value="300000">5 min</option></select></label>
                <button id="pause" type="button" aria-pressed="false">Pause</button>
              </div>
              <div id="axis" aria-hidden="true"></div>
              <div id="spans" tabindex="0" role="listbox" aria-label="Fetches and exchanges"></div>
            </section>
          </section>
          <aside id="item" aria-label="Details" tabindex="-1">
            <p class="empty">Select a row to see its record.</p>
          </aside>
        </main>
        <script nonce="{{nonce}}">
        \(PageScript.text)
        </script>
        </body>
        </html>
        """
}
