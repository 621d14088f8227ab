// The page: tabs, search, keys, theme, and panels that are created when first shown.
const TABS = [["overview", "Overview"], ["graph", "Graph"], ["tensors", "Tensors"], ["memory", "Memory"], ["time", "Time"], ["roofline", "Roofline"]];
const MAKERS = { overview: overviewPanel, graph: graphPanel, tensors: tensorsPanel, memory: memoryPanel, time: timingPanel, roofline: rooflinePanel };
const KEYS = [["1 – 6", "switch to a tab"], ["/", "find an operation or tensor"], ["t", "dark or light theme"], ["s", "show one of two reports, or both"], ["arrows, + −", "move and zoom in the graph and charts"], ["j k", "next and previous operation"], ["Enter", "expand or collapse the selection"], ["e", "expand or collapse all"], ["[ ]", "previous and next stage"], ["f", "show the whole graph"], ["?", "show these keys"]];
let made = new Map();

const sides = () => (state.reports.length === 2 && state.beside ? [0, 1] : [state.side]);
const panel = (tab, side) => {
  const key = `${tab}:${side}`;
  if (!made.has(key)) made.set(key, MAKERS[tab](state.reports[side], side));
  return made.get(key);
};
const showTab = (tab) => {
  state.tab = tab;
  for (const b of document.querySelectorAll("#tabs [role=tab]")) { const on = b.dataset.tab === tab; b.setAttribute("aria-selected", String(on)); b.tabIndex = on ? 0 : -1; }
  const shown_ = sides();
  const holders = shown_.map((side) => el("div", { class: `panel ${tab}` }, state.reports.length === 2 ? el("h2", { class: "side" }, el("b", {}, "AB"[side]), ` ${sideName(state.reports, side)}`) : null, panel(tab, side).node));
  const all = el("div", { class: shown_.length === 2 ? "beside" : "alone", role: "tabpanel", id: "panel", "aria-labelledby": `tab-${tab}` }, holders);
  document.getElementById("panels").replaceChildren(...(tab === "overview" && state.reports.length === 2 ? [comparison(state.reports)] : []), all);
  document.body.dataset.tab = tab;
  shown_.forEach((side) => panel(tab, side).show());
};
const showTabs = () => {
  const buttons = TABS.map(([key, title], at) => el("button", { role: "tab", id: `tab-${key}`, "data-tab": key, "aria-controls": "panel", title: `${title} (${at + 1})`, onclick: () => showTab(key) }, title));
  const two = state.reports.length === 2 ? el("div", { class: "sides", role: "group", "aria-label": "Which report" }, ["A", "B", "A | B"].map((words, at) => el("button", { "aria-pressed": String(at === 2 ? state.beside : !state.beside && state.side === at), title: at < 2 ? sideName(state.reports, at) : "both (s)", onclick: () => choose(at) }, words))) : null;
  document.getElementById("tabs").replaceChildren(...buttons, ...(two ? [two] : []));
};
const choose = (at) => { state.beside = at === 2; if (at < 2) state.side = at; showTabs(); showTab(state.tab); };

const head = () => {
  const { model, facts } = state.reports[state.side];
  document.getElementById("model-name").textContent = state.reports.map((r) => r.model.name || "model").filter((n, at, all) => all.indexOf(n) === at).join(" and ");
  const words = [model.format, bytes(model.bytes), plural(facts.operations.count, "operation"), ...(model.description ? [model.description.slice(0, 60)] : [])];
  document.getElementById("chips").replaceChildren(...words.filter(Boolean).map((w) => el("li", {}, w)));
};

// Search through the operations and tensors of all subgraphs in their last stage.
const searching = () => {
  const input = document.getElementById("find"), list = document.getElementById("found");
  let hits = [], at = -1;
  const everything = () => state.reports.flatMap((report, side) => (report.subgraphs || []).flatMap((s) => {
    const find = lookups(report), last = s.stages.length - 1, graph = last >= 0 ? find.pool.graphs[s.stages[last].graph] : null;
    return graph ? graph.operations.map(([, , outs], op) => {
      const o = find.operation(graph, op), name = outs.length ? tensorName(find.tensor(graph, outs[0]), outs[0]) : "";
      return { side, index: s.index, op, title: o.kind, line: [state.reports.length > 1 ? "AB"[side] : "", o.location, name].filter(Boolean).join(" · "), words: `${o.kind} ${o.location} ${outs.map((t) => find.tensor(graph, t).name).join(" ")} ${graph.operations[op][1].map((t) => (t === null ? "" : find.tensor(graph, t).name)).join(" ")}`.toLowerCase() };
    }) : [];
  }));
  let known = null;
  const close = () => { list.hidden = true; at = -1; };
  const pick = (hit) => { close(); input.blur(); goTo(hit.side, hit.index, hit.op); };
  const mark = () => [...list.children].forEach((li, i) => li.classList.toggle("now", i === at));
  const search = () => {
    const words = input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) { close(); return; }
    known = known || everything();
    hits = known.filter((e) => words.every((w) => e.words.includes(w)));
    at = hits.length ? 0 : -1;
    list.replaceChildren(...(hits.length ? hits.slice(0, 40).map((hit) => el("li", { onmousedown: (e) => { e.preventDefault(); pick(hit); } }, el("b", {}, hit.title), el("span", {}, hit.line))) : [el("li", { class: "none" }, "No matches.")]));
    if (hits.length > 40) list.append(el("li", { class: "none" }, `and ${(hits.length - 40).toLocaleString("en")} more`));
    list.hidden = false;
    mark();
  };
  input.addEventListener("input", debounced(search, 80));
  input.addEventListener("keydown", (e) => {
    if (e.key === "Escape") { input.value = ""; close(); input.blur(); } else if (e.key === "Enter") { search(); if (hits[at]) pick(hits[at]); } else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      at = Math.max(0, Math.min(Math.min(hits.length, 40) - 1, at + (e.key === "ArrowDown" ? 1 : -1)));
      mark();
      if (list.children[at]) list.children[at].scrollIntoView({ block: "nearest" });
    }
  });
  input.addEventListener("blur", () => setTimeout(close, 150));
  listen((what) => { if (what === "reports") known = null; });
};
const goTo = (side, index, at) => {
  if (!sides().includes(side)) { state.side = side; showTabs(); }
  showTab("graph");
  const graph = panel("graph", side);
  if (graph.go) { graph.go(index, at); graph.view.canvas.focus({ preventScroll: true }); }
};
listen((what, detail) => { if (what === "go") goTo(detail.side, detail.index, detail.at); });

const setTheme = () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  themed();
};
const themed = () => {
  made = new Map([...made].filter(([key]) => key.startsWith("graph:"))); // elements get their colours when they are created
  showTab(state.tab);
  tell("theme");
};
const setReports = (reports) => {
  state.reports = reports;
  made = new Map();
  tell("closed");
  tell("reports");
  head();
  showTabs();
  showTab(state.tab);
};

const keys = (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, select, textarea")) return;
  const tab = TABS[+e.key - 1];
  if (tab) showTab(tab[0]);
  else if (e.key === "/") document.getElementById("find").focus();
  else if (e.key === "t") setTheme();
  else if (e.key === "s" && state.reports.length === 2) choose(state.beside ? 0 : state.side === 0 ? 1 : 2);
  else if (e.key === "?") document.getElementById("keys").showModal();
  else return;
  e.preventDefault();
};

const begin = async () => {
  const told = await unpacked(document.getElementById("report-data").textContent);
  state.live = told.live;
  state.beside = told.reports.length === 2;
  const hash = new URLSearchParams(location.hash.slice(1));
  if (MAKERS[hash.get("tab")]) state.tab = hash.get("tab");
  if (["dark", "light"].includes(hash.get("theme"))) document.documentElement.dataset.theme = hash.get("theme");
  document.getElementById("key-list").replaceChildren(...KEYS.flatMap(([key, words]) => [el("dt", {}, key), el("dd", {}, words)]));
  document.getElementById("theme").addEventListener("click", setTheme);
  document.getElementById("help").addEventListener("click", () => document.getElementById("keys").showModal());
  document.getElementById("tabs").addEventListener("keydown", (e) => {
    const at = TABS.findIndex(([key]) => key === state.tab) + (e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0);
    if (["ArrowRight", "ArrowLeft"].includes(e.key) && TABS[at]) { e.preventDefault(); showTab(TABS[at][0]); document.getElementById(`tab-${TABS[at][0]}`).focus(); }
  });
  document.addEventListener("keydown", keys);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!document.documentElement.dataset.theme) themed(); });
  searching();
  setReports(told.reports);
  if (state.live) liveBar(setReports);
  document.documentElement.dataset.ready = "yes";
};
begin().catch((error) => {
  document.getElementById("panels").replaceChildren(empty("This page cannot be shown", `${error}. It needs a browser from 2023 or later.`));
  throw error;
});
