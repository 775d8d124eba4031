/// The style of the page: two sets of colors by the system's setting, one accent, and a layout from 400 to 2 000 pixels.
enum PageStyle {
    static let css = #"""
        /* Colors: text on its ground has a contrast of 4.5 or more in both sets. */
        :root {
          color-scheme: light dark;
          --ground: #ffffff; --raised: #f6f7f9; --line: #dfe3e8; --text: #1a1f26; --dim: #5b6470;
          --accent: #0b5fd0; --accent-ground: #e6effc; --on-accent: #ffffff;
          --good: #187a3c; --warn: #8a5a00; --bad: #b3261e; --bad-ground: #fdeceb; --idle: #8d96a3;
          --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --ground: #14171b; --raised: #1b1f25; --line: #2c323a; --text: #e7eaee; --dim: #a0a9b5;
            --accent: #78b0ff; --accent-ground: #1c2d47; --on-accent: #0b1420;
            --good: #5ccb85; --warn: #e3b04b; --bad: #ff8a80; --bad-ground: #3a1d1c; --idle: #6d7682;
          }
        }
        * { box-sizing: border-box; }
        [hidden] { display: none !important; }
        html, body { height: 100%; margin: 0; }
        body {
          display: flex; flex-direction: column; background: var(--ground); color: var(--text);
          font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif;
        }
        h1, h2, p { margin: 0; font-size: inherit; font-weight: 600; }
        .thin { font-weight: 400; color: var(--dim); }
        .dim { color: var(--dim); font-size: 12.5px; font-variant-numeric: tabular-nums; }
        .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }

        /* Controls. */
        button, select, input {
          font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: 6px;
          padding: 3px 10px; height: 30px;
        }
        button:hover, select:hover { border-color: var(--idle); }
        button[aria-pressed="true"] { background: var(--accent); color: var(--on-accent); border-color: var(--accent); }
        button.danger { color: var(--bad); }
        :focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
        .field { display: inline-flex; align-items: center; gap: 6px; color: var(--dim); font-size: 12.5px; }

        header {
          display: flex; align-items: center; gap: 14px; padding: 9px 16px; border-bottom: 1px solid var(--line); background: var(--raised);
        }
        header h1 { font-size: 15px; display: flex; align-items: center; gap: 7px; white-space: nowrap; }
        .mark { width: 14px; height: 14px; border-radius: 4px; background: linear-gradient(var(--accent) 45%, transparent 45% 55%, var(--accent) 55%); }
        .search { position: relative; flex: 1; max-width: 460px; }
        .search input { width: 100%; padding-right: 30px; }
        .search kbd {
          position: absolute; right: 8px; top: 6px; font: 11px var(--mono); color: var(--dim); border: 1px solid var(--line);
          border-radius: 4px; padding: 0 5px;
        }
        .search input:focus + kbd { visibility: hidden; }
        .controls { display: flex; gap: 10px; align-items: center; margin-left: auto; }
        .state { font-size: 12.5px; font-weight: 400; display: flex; align-items: center; gap: 6px; color: var(--dim); white-space: nowrap; }
        .state::before { content: ""; width: 8px; height: 8px; border-radius: 50%; background: var(--idle); }
        .state.live::before { background: var(--good); }
        .state.lost::before { background: var(--bad); }
        .warning { background: var(--bad-ground); color: var(--bad); padding: 6px 16px; font-weight: 500; border-bottom: 1px solid var(--line); }

        /* Layout: three columns, two below 1 100 pixels, one below 700. */
        main { flex: 1; min-height: 0; display: grid; grid-template-columns: 232px minmax(0, 1fr) minmax(300px, 26%); }
        nav { border-right: 1px solid var(--line); background: var(--raised); overflow: auto; padding: 8px; }
        nav h2 {
          font-size: 11px; letter-spacing: .06em; text-transform: uppercase; color: var(--dim); padding: 10px 8px 4px;
        }
        nav button {
          display: grid; grid-template-columns: 1fr auto; column-gap: 8px; width: 100%; height: auto; text-align: left; border: 0;
          background: none; padding: 6px 8px;
        }
        nav button:hover { background: var(--line); }
        nav button[aria-current="true"] { background: var(--accent-ground); }
        nav button[aria-current="true"] .name { color: var(--accent); font-weight: 600; }
        nav .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        nav .note { grid-column: 1 / -1; color: var(--dim); font-size: 12px; }
        nav .number { font: 12px var(--mono); color: var(--dim); align-self: center; }
        nav .gone { opacity: .75; text-decoration: line-through; }
        .center { display: flex; flex-direction: column; min-height: 0; min-width: 0; }
        .heading { display: flex; align-items: center; gap: 12px; padding: 0 16px; min-height: 48px; flex: none; }
        .heading h2 { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        .heading .field { margin-left: auto; align-self: center; }
        .heading button { height: 26px; padding: 1px 9px; font-size: 12.5px; white-space: nowrap; }

        /* The table: rows of 28 pixels, of which only the visible ones exist. */
        #table { flex: 1 1 58%; min-height: 120px; overflow: auto; position: relative; border-top: 1px solid var(--line); }
        #columns {
          position: sticky; top: 0; z-index: 2; background: var(--raised); color: var(--dim); font-size: 12px; font-weight: 500;
          border-bottom: 1px solid var(--line);
        }
        #columns, .row { display: grid; gap: 0 14px; align-items: center; height: 28px; padding: 0 16px; min-width: 100%; }
        .row { position: absolute; left: 0; right: 0; cursor: default; font-size: 13px; font-variant-numeric: tabular-nums; }
        .row.odd { background: color-mix(in srgb, var(--raised) 55%, transparent); }
        .row:hover { background: var(--raised); }
        .row[aria-selected="true"] { background: var(--accent-ground); box-shadow: inset 3px 0 var(--accent); }
        .row > *, #columns > * { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        .row > :first-child { font-family: var(--mono); }
        .right { text-align: right; }
        .zero { color: var(--dim); }
        #canvas { position: relative; }
        .empty { color: var(--dim); padding: 26px 16px; font-weight: 400; text-align: center; }
        .phase { display: inline-flex; align-items: center; gap: 6px; font-size: 12.5px; }
        .phase::before { content: ""; flex: none; width: 7px; height: 7px; border-radius: 50%; background: var(--idle); }
        .phase.completed::before, .phase.ok::before { background: var(--good); }
        .phase.unchanged::before { background: none; border: 2px solid var(--good); }
        .phase.loading, .phase.running { color: var(--accent); }
        .phase.loading::before, .phase.running::before { background: var(--accent); }
        .phase.stale, .phase.pending { color: var(--warn); }
        .phase.stale::before, .phase.pending::before { background: var(--warn); }
        .phase.failed, .phase.refused { color: var(--bad); }
        .phase.failed::before, .phase.refused::before { background: var(--bad); border-radius: 1px; }
        @media (prefers-reduced-motion: no-preference) {
          .phase.loading::before, .phase.running::before { animation: pulse 1.1s ease-in-out infinite alternate; }
          @keyframes pulse { to { opacity: .25; } }
        }

        /* The waterfall. */
        .splitter { height: 1px; background: var(--line); }
        .waterfall { flex: 1 1 42%; min-height: 150px; display: flex; flex-direction: column; }
        #axis { position: relative; flex: none; height: 18px; margin-right: 16px; margin-left: calc(16px + min(38% - 12px, 340px)); font-size: 11px; color: var(--dim); }
        #axis span { position: absolute; font-variant-numeric: tabular-nums; white-space: nowrap; }
        #spans { flex: 1; overflow: hidden auto; padding: 2px 16px 10px; }
        .span { display: grid; grid-template-columns: min(38%, 340px) minmax(0, 1fr); height: 23px; align-items: center; border-radius: 4px; }
        .span:hover { background: var(--raised); }
        .span[aria-selected="true"] { background: var(--accent-ground); box-shadow: inset 3px 0 var(--accent); }
        .span .label { display: flex; gap: 8px; min-width: 0; padding-right: 12px; }
        .span .label > * { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        .span .label .what { font: 12.5px var(--mono); flex: 0 1 auto; }
        .span .label .owner { color: var(--dim); font-size: 12px; flex: 0 0 auto; max-width: 40%; }
        /* A line at each fifth of the time. */
        .track {
          position: relative; height: 100%; border-left: 1px solid var(--line);
          background: repeating-linear-gradient(90deg, transparent 0 calc(20% - 1px), var(--line) calc(20% - 1px) 20%);
        }
        .bar { position: absolute; top: 6px; height: 11px; min-width: 3px; border-radius: 3px; background: var(--good); }
        .bar.unchanged { background: none; border: 2px solid var(--good); }
        .bar.running { background: var(--accent); }
        .bar.failed, .bar.refused { background: var(--bad); }
        .bar.canceled { background: var(--idle); }
        .bar.exchange { top: 8px; height: 7px; }
        .bar + .time { position: absolute; top: 3px; font-size: 11px; color: var(--dim); background: var(--ground); margin: 0 5px; padding: 0 2px; white-space: nowrap; font-variant-numeric: tabular-nums; }

        /* The details. */
        aside { border-left: 1px solid var(--line); overflow: auto; background: var(--ground); }
        aside .top { position: sticky; top: 0; background: var(--ground); padding: 12px 16px 10px; border-bottom: 1px solid var(--line); z-index: 1; }
        aside h2 { font: 600 14px/1.4 var(--mono); overflow-wrap: anywhere; max-height: 6em; overflow: auto; }
        aside .actions { display: flex; flex-wrap: wrap; gap: 6px; margin-top: 10px; }
        aside .actions button { height: 28px; padding: 2px 9px; font-size: 13px; }
        aside dl { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 4px 16px; margin: 0; padding: 12px 16px; }
        aside dt { color: var(--dim); }
        aside dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
        aside h3 { font-size: 11px; letter-spacing: .06em; text-transform: uppercase; color: var(--dim); margin: 0; padding: 8px 16px 4px; }
        aside pre {
          margin: 0 16px 16px; padding: 12px; background: var(--raised); border: 1px solid var(--line); border-radius: 8px; overflow: auto;
          font: 12.5px/1.5 var(--mono); tab-size: 2; white-space: pre-wrap; overflow-wrap: anywhere;
        }
        pre .name { color: var(--accent); } pre .text { color: var(--good); } pre .word { color: var(--warn); }
        .chips { display: flex; flex-wrap: wrap; gap: 6px; padding: 0 16px 14px; }
        .chips > * {
          height: auto; max-width: 100%; overflow-wrap: anywhere; text-align: left; font: 12px var(--mono); background: var(--raised);
          border: 1px solid var(--line); border-radius: 5px; padding: 1px 7px;
        }
        .back { display: none; }

        @media (max-width: 1100px) {
          main { grid-template-columns: 190px minmax(0, 1fr); position: relative; }
          aside { position: absolute; inset: 0 0 0 auto; width: min(460px, 100%); box-shadow: -8px 0 24px rgb(0 0 0 / .18); display: none; z-index: 5; }
          aside.open { display: block; }
          .back { display: inline-block; margin-bottom: 8px; }
        }
        @media (max-width: 700px) {
          header { flex-wrap: wrap; gap: 8px 10px; padding: 8px 12px; }
          .search { order: 5; flex-basis: 100%; max-width: none; }
          #axis span:nth-child(5) { display: none; }
          .controls { gap: 8px; }
          .controls .field span, .search kbd, header .thin { display: none; }
          .state:not(.lost) { font-size: 0; gap: 0; }
          main { display: flex; flex-direction: column; }
          nav { display: flex; gap: 6px; border-right: 0; border-bottom: 1px solid var(--line); padding: 6px 12px; flex: none; }
          nav h2, nav .note { display: none; }
          nav button { width: auto; flex: none; }
          .center { flex: 1; }
          .heading { padding: 4px 12px; flex-wrap: wrap; gap: 2px 10px; min-height: 40px; }
          #columns, .row { padding: 0 12px; }
          #spans { padding: 2px 12px 8px; }
          .span .label .owner { display: none; }
        }
        """#
}
