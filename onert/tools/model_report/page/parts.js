// Parts of panels: cards, sortable tables, and empty states.
const card = (title, ...children) => el("section", { class: "card" }, title && el("h2", {}, title), ...children);
const empty = (title, words) => el("div", { class: "empty" }, el("strong", {}, title), el("p", {}, words));
const pairs = (rows, kind = "pairs") => el("dl", { class: kind }, rows.filter(Boolean).map(([what, words]) => [el("dt", {}, what), el("dd", {}, words)]));
const swatch = (colour) => { const s = el("i", { class: "swatch" }); s.style.background = colour; return s; };
const bar = (share, colour) => {
  const fill = el("i");
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  if (colour) fill.style.background = colour;
  return el("span", { class: "bar" }, fill);
};
const button = (label, title, onclick, more = {}) => el("button", { class: "plain boxed", title, onclick, ...more }, label);

const MOST_ROWS = 300;
// A table that sorts by a click on a heading. Long tables show only their first rows and a button to show all.
// columns: {title, text(row) | cell(row), by(row), right}
const table = (columns, rows, { onrow, sort = null, words = "Nothing to show", label = "" } = {}) => {
  const box = el("div", { class: "table" });
  let order = sort, all = false, current = rows;
  const render = () => {
    const sorted = order === null ? current : [...current].sort((a, b) => {
      const x = columns[order.at].by(a), y = columns[order.at].by(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (order.down ? -1 : 1);
    });
    const head = el("tr", {}, columns.map((column, at) => el("th", {
      class: column.right ? "right" : "", scope: "col",
      "aria-sort": order && order.at === at ? (order.down ? "descending" : "ascending") : null,
    }, column.by ? el("button", {
      class: "sort", onclick: () => { order = { at, down: order && order.at === at ? !order.down : !!column.right }; render(); },
    }, column.title, order && order.at === at ? (order.down ? " ↓" : " ↑") : "") : column.title)));
    const body = (all ? sorted : sorted.slice(0, MOST_ROWS)).map((row) => {
      const tr = el("tr", onrow ? { tabindex: "0", class: "link", onclick: () => onrow(row), onkeydown: (e) => { if (e.key === "Enter") onrow(row); } } : {});
      tr.append(...columns.map((c) => el("td", { class: c.right ? "right" : c.class || "" }, c.cell ? c.cell(row) : c.text(row))));
      return tr;
    });
    box.replaceChildren(el("table", { "aria-label": label }, el("thead", {}, head), el("tbody", {}, body)));
    if (!sorted.length) box.append(el("p", { class: "none" }, words));
    if (!all && sorted.length > MOST_ROWS) {
      box.append(button(`Show all ${sorted.length.toLocaleString("en")} rows`, "", () => { all = true; render(); }));
    }
  };
  render();
  box.show = (found) => { current = found; render(); };
  return box;
};

const legend = (families) => el("ul", { class: "legend" }, [...families].map((f) => el("li", {}, swatch(familyColour(f)), familyName(f))));

// Resolve the indices in a report.
const lookups = (report) => {
  if (report.lookups) return report.lookups;
  const pool = report.graphs || { operations: [], tensors: [], graphs: [] };
  const subgraph = (index) => (report.subgraphs || []).find((s) => s.index === index);
  const compiled = (index) => {
    const found = subgraph(index), last = found && found.stages[found.stages.length - 1];
    return last && last.name === "compiled" ? pool.graphs[last.graph] : null;
  };
  const operation = (graph, at) => pool.operations[graph.operations[at][0]];
  const tensor = (graph, at) => pool.tensors[graph.tensors[at]];
  const times = new Map();
  for (const piece of (report.profile && report.profile.pieces) || []) times.set(`${piece.subgraph}:${piece.operations[0]}`, piece);
  const whole = ((report.profile && report.profile.pieces) || []).reduce((sum, p) => sum + (p.calls ? 0 : p.us), 0) || 1;
  report.lookups = { pool, subgraph, compiled, operation, tensor, whole, piece: (index, at) => times.get(`${index}:${at}`) };
  return report.lookups;
};
const tensorName = (t, at) => (t && t.name) || `tensor ${at}`;
const familyOf = (report, index, at) => {
  const find = lookups(report), graph = find.compiled(index);
  return graph && graph.operations[at] ? find.operation(graph, at).family : "other";
};
// The families of a report's compiled operations.
const familiesOf = (report) => {
  const find = lookups(report), found = new Set();
  for (const each of report.subgraphs || []) {
    const graph = find.compiled(each.index);
    if (graph) graph.operations.forEach((_, at) => found.add(find.operation(graph, at).family));
  }
  return found;
};
const quantised = (q) => (!q ? "" : q.count === 1 ? `scale ${shown(q.scales[0])}, zero point ${q.zero_points[0]}`
  : `${q.count} scales${q.block ? ` in blocks of ${q.block}` : ""} along axis ${q.axis}, ${shown(q.least)} to ${shown(q.most)}`);
