// A graph on a canvas: camera, drawing of the visible part, and hit testing.
const FAR = 0.16, NEAR = 0.42; // zoom below FAR: only blocks; from NEAR on: text too

const graphCanvas = (box, { onselect, onfold, colour }) => {
  const view = { x: 0, y: 0, k: 1 };
  let unplaced = false; // shown before its box had a size
  let found = null, selected = null, hovered = null, marked = new Set(), colours = null, flat = [];
  const { canvas, redraw } = canvasIn(box, 0, (c, w, h) => draw(c, w, h), "The graph of operations. Arrow keys move, plus and minus zoom, j and k go through operations, Enter expands.");
  canvas.classList.add("graph-canvas");

  const bounds = (node) => [node.ax - node.w / 2, node.ay - node.h / 2];
  const settle = (nodes, edges, dx, dy, depth) => {
    for (const n of nodes) {
      n.ax = n.x + dx; n.ay = n.y + dy; n.depth = depth;
      flat.push(n);
      if (n.inner) settle(n.inner.nodes, n.inner.edges, n.ax - n.w / 2 + PADDING, n.ay - n.h / 2 + HEADER + PADDING, depth + 1);
    }
    for (const e of edges) {
      e.line = e.points.map(([x, y]) => [x + dx, y + dy]);
      const xs = e.line.map((p) => p[0]), ys = e.line.map((p) => p[1]);
      e.box = [Math.min(...xs) - 40, Math.min(...ys), Math.max(...xs) + 40, Math.max(...ys)];
    }
  };
  const paletteNow = () => {
    const names = ["--card", "--text", "--soft", "--line", "--edge", "--accent", "--ground", "--added", "--inset"];
    return Object.fromEntries(names.map((n) => [n.slice(2), css(n)]));
  };

  const draw = (c, w, h) => {
    if (!found) return;
    if (unplaced) { unplaced = false; start(); }
    colours = paletteNow();
    const { k } = view;
    const left = -view.x / k, top = -view.y / k, right = (w - view.x) / k, bottom = (h - view.y) / k;
    c.save();
    c.translate(view.x, view.y);
    c.scale(k, k);
    drawLevel(c, found.nodes, found.edges, [left, top, right, bottom]);
    c.restore();
    drawMap(c, w, h);
  };
  const drawLevel = (c, nodes, edges, seen) => {
    const near = view.k >= NEAR;
    const busy = edges.filter((e) => e.box[3] >= seen[1] && e.box[1] <= seen[3] && e.box[2] >= seen[0] && e.box[0] <= seen[2]);
    const plain = busy.filter((e) => !touches(e));
    stroke(c, plain.filter((e) => !e.long), colours.edge, 1.1, 1);
    if (view.k >= FAR) stubs(c, plain.filter((e) => e.long));
    stroke(c, busy.filter(touches), colours.accent, 2, 1);
    if (near) labels(c, busy);
    for (const n of nodes) {
      const [x, y] = bounds(n);
      if (y > seen[3] || y + n.h < seen[1] || x > seen[2] || x + n.w < seen[0]) continue;
      drawNode(c, n, x, y);
      if (n.inner) {
        for (const [title, dx, dy] of n.inner.captions || []) text(c, title, x + PADDING + dx, y + HEADER + PADDING + dy, { colour: colours.soft, size: 11 });
        drawLevel(c, n.inner.nodes, n.inner.edges, seen);
      }
    }
  };
  const touches = (e) => selected && (e.from === selected || e.to === selected);
  const stroke = (c, edges, colour, width, alpha) => {
    if (!edges.length) return;
    c.globalAlpha = alpha;
    c.strokeStyle = c.fillStyle = colour;
    c.lineWidth = width;
    c.beginPath();
    for (const e of edges) route(c, e);
    c.stroke();
    if (view.k >= 0.3) {
      c.beginPath();
      for (const e of edges) { const [x, y] = e.line[e.line.length - 1]; c.moveTo(x, y); c.lineTo(x - 3.6, y - 6.5); c.lineTo(x + 3.6, y - 6.5); }
      c.fill();
    }
    c.globalAlpha = 1;
  };
  const route = (c, e) => {
    const p = e.line;
    c.moveTo(p[0][0], p[0][1]);
    if (view.k < FAR) { c.lineTo(p[p.length - 1][0], p[p.length - 1][1]); return; }
    if (e.long) { // beside the blocks in between
      const [[x1, y1], [x2, y2]] = [p[0], p[p.length - 1]], out = Math.min(260, 60 + (y2 - y1) / 30);
      c.bezierCurveTo(x1 + out, y1 + 60, x2 + out, y2 - 60, x2, y2);
      return;
    }
    for (let i = 1; i < p.length; i++) {
      const [x1, y1] = p[i - 1], [x2, y2] = p[i], bend = (y2 - y1) * 0.5;
      if (Math.abs(x1 - x2) < 0.5) c.lineTo(x2, y2); else c.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
    }
  };
  // The type of a collapsed group's result. A single operation shows it in its own node.
  const labels = (c, edges) => {
    const said = new Set();
    for (const e of edges) {
      if (e.from.kind !== "group" || e.from.open || said.has(e.from)) continue;
      said.add(e.from);
      const [x, y] = e.line[0], t = lookups(e.from.scene.report).tensor(e.from.scene.graph, e.tensors[0]);
      text(c, t.type, x + 6, y + 10, { colour: colours.soft, size: 10 });
    }
  };
  // Edges across many blocks are drawn as stubs at both ends, or in full if one of their ends is selected.
  const stubs = (c, edges) => {
    const leaving = new Map();
    c.strokeStyle = c.fillStyle = colours.edge;
    c.lineWidth = 1.1;
    c.beginPath();
    for (const e of edges) {
      const [x1, y1] = e.line[0], [x2, y2] = e.line[e.line.length - 1];
      leaving.set(e.from, (leaving.get(e.from) || 0) + 1);
      c.moveTo(x1 + 8, y1); c.quadraticCurveTo(x1 + 10, y1 + 10, x1 + 22, y1 + 12);
      c.moveTo(x2 - 22, y2 - 14); c.quadraticCurveTo(x2 - 8, y2 - 13, x2 - 5, y2);
    }
    c.stroke();
    c.beginPath();
    for (const e of edges) for (const [x, y] of [[e.line[0][0] + 23, e.line[0][1] + 12], [e.line[e.line.length - 1][0] - 23, e.line[e.line.length - 1][1] - 14]]) { c.moveTo(x + 2.4, y); c.arc(x, y, 2.4, 0, 7); }
    c.fill();
    if (view.k < NEAR) return;
    for (const [from, many] of leaving) text(c, many > 1 ? `to ${many} below` : "far below", from.ax + 30, from.ay + from.h / 2 + 12, { colour: colours.soft, size: 10 });
  };
  const drawNode = (c, n, x, y) => {
    const far = view.k < FAR, isEnd = n.kind === "input" || n.kind === "output";
    const { fill, strip, badge } = colour(n);
    c.beginPath();
    c.roundRect(x, y, n.w, n.h, far ? 0 : isEnd ? 17 : 7);
    c.fillStyle = far && !n.open ? (isEnd ? colours.soft : fill || strip) : n.open ? colours.inset : fill || colours.card;
    c.fill();
    if (far && !n.open) { outline(c, n); return; }
    c.strokeStyle = isEnd ? colours.soft : colours.line;
    c.lineWidth = 1;
    c.stroke();
    if (!isEnd) {
      c.save();
      c.clip();
      c.fillStyle = strip;
      c.fillRect(x, y, n.open ? 3 : 5, n.h);
      c.restore();
      if (n.kind === "group" && !n.open) { c.strokeStyle = colours.line; c.beginPath(); c.roundRect(x + 3, y + n.h, n.w - 6, 3, [0, 0, 4, 4]); c.stroke(); }
    }
    outline(c, n);
    if (view.k < NEAR) return;
    const ink = fill ? (isDark() ? "#fff" : "#111") : colours.text;
    const foldable = n.kind === "group" || (n.bodies && n.bodies.length);
    const room = n.w - 24 - (foldable ? 18 : 0) - (badge ? 38 : 0);
    c.font = `600 12.5px ${FONT}`;
    const title = fitting(c, n.title, isEnd ? n.w - 20 : room);
    if (isEnd) {
      text(c, title, n.ax, y + 12, { align: "center", size: 12, weight: 600, colour: ink });
      c.font = `11px ${FONT}`;
      text(c, fitting(c, n.line, n.w - 20), n.ax, y + 25, { align: "center", size: 10.5, colour: colours.soft });
      return;
    }
    text(c, title, x + 14, y + 14, { size: 12.5, weight: 600, colour: ink });
    if (!n.open) { c.font = `11px ${FONT}`; text(c, fitting(c, n.line, n.w - 24), x + 14, y + 30, { size: 11, colour: fill ? ink : colours.soft }); }
    if (foldable) {
      const fx = x + n.w - 14, fy = y + 14;
      c.strokeStyle = ink;
      c.lineWidth = 1.4;
      c.beginPath();
      c.moveTo(fx - 4, fy); c.lineTo(fx + 4, fy);
      if (!n.open) { c.moveTo(fx, fy - 4); c.lineTo(fx, fy + 4); }
      c.stroke();
    }
    if (badge) text(c, badge, x + n.w - 10 - (foldable ? 16 : 0), y + 14, { align: "right", size: 11, weight: 600, colour: fill ? ink : colours.text });
  };
  const outline = (c, n) => {
    const isNew = marked.has(n.path);
    if (n !== selected && n !== hovered && !isNew) return;
    const [x, y] = bounds(n);
    c.strokeStyle = n === selected ? colours.accent : isNew ? colours.added : colours.soft;
    c.lineWidth = Math.min(12, (n === selected ? 2.5 : isNew ? 2 : 1.5) / Math.min(1, Math.max(view.k, 0.2)));
    c.beginPath();
    c.roundRect(x, y, n.w, n.h, n.kind === "input" || n.kind === "output" ? 17 : 7);
    c.stroke();
  };

  // A map of the whole graph at the right edge, with a frame around the visible part.
  let map = null;
  const MAP = 74;
  const mapScale = (w, h) => Math.min((MAP - 14) / Math.max(found.w, 1), (h - 24) / Math.max(found.h, 1));
  const drawMap = (c, w, h) => {
    if (w < 420 || found.h * view.k < h * 1.2) { map = null; return; }
    const s = mapScale(w, h), x0 = w - MAP + (MAP - found.w * s) / 2, y0 = 12;
    map = { s, x0, y0, left: w - MAP };
    c.fillStyle = colours.card;
    c.globalAlpha = 0.9;
    c.fillRect(w - MAP, 0, MAP, h);
    c.globalAlpha = 1;
    rule(c, w - MAP, 0, w - MAP, h, colours.line);
    for (const n of found.nodes) {
      c.fillStyle = n.kind === "input" || n.kind === "output" ? colours.soft : colour(n).fill || colour(n).strip;
      c.fillRect(x0 + (n.x - n.w / 2) * s, y0 + (n.y - n.h / 2) * s, Math.max(2, n.w * s), Math.max(0.8, n.h * s));
    }
    c.strokeStyle = colours.accent;
    c.lineWidth = 1.5;
    const fy = y0 + (-view.y / view.k) * s, fh = (h / view.k) * s;
    c.strokeRect(w - MAP + 3, Math.max(2, fy), MAP - 6, Math.max(4, Math.min(h - 4, fy + fh) - Math.max(2, fy)));
  };

  const size = () => [box.clientWidth, box.clientHeight];
  const zoomAt = (x, y, factor) => {
    const k = Math.max(0.012, Math.min(3, view.k * factor)), f = k / view.k;
    view.x = x - (x - view.x) * f;
    view.y = y - (y - view.y) * f;
    view.k = k;
    redraw();
  };
  const fit = () => {
    if (!found) return;
    const [w, h] = size();
    view.k = Math.max(0.012, Math.min(1, (w - 60) / Math.max(found.w, 1), (h - 40) / Math.max(found.h, 1)));
    view.x = (w - found.w * view.k) / 2;
    view.y = (h - found.h * view.k) / 2;
    redraw();
  };
  const start = () => { // show the beginning at a legible size
    const [w, h] = size();
    if (!w || !h) { unplaced = true; return; }
    fit();
    if (view.k >= 0.6) return;
    const first = found.nodes.filter((n) => n.y < found.nodes[0].y + 900);
    const wide = Math.max(...first.map((n) => n.x + n.w / 2)) - Math.min(...first.map((n) => n.x - n.w / 2));
    view.k = Math.max(0.6, Math.min(1, (w - 120) / wide, h / 300));
    const edges = [Math.max(...first.map((n) => n.x + n.w / 2)), Math.min(...first.map((n) => n.x - n.w / 2))];
    const middle = wide * view.k < w ? (edges[0] + edges[1]) / 2 : found.nodes[0].x;
    view.x = (w - (w > 420 ? MAP : 0)) / 2 - middle * view.k;
    view.y = 24;
    redraw();
  };
  const centre = (n) => {
    const [w, h] = size();
    view.k = Math.max(view.k, 0.8);
    view.x = w / 2 - n.ax * view.k;
    view.y = h / 2 - n.ay * view.k;
    redraw();
  };
  const under = (px, py) => {
    const x = (px - view.x) / view.k, y = (py - view.y) / view.k;
    let best = null;
    for (const n of flat) if (Math.abs(x - n.ax) <= n.w / 2 && Math.abs(y - n.ay) <= n.h / 2 && (!best || n.depth >= best.depth)) best = n;
    return best;
  };
  const select = (n, { go = false } = {}) => { selected = n; if (n && go) centre(n); redraw(); onselect(n); };
  const isFold = (n) => n && (n.kind === "group" || (n.bodies && n.bodies.length > 0));

  // Mouse, touch and keyboard.
  const pointers = new Map();
  let moved = 0, pinch = 0;
  canvas.addEventListener("pointerdown", (e) => {
    canvas.setPointerCapture(e.pointerId);
    if (map && e.offsetX > map.left) { jump(e); pointers.set(e.pointerId, { map: true }); return; }
    pointers.set(e.pointerId, { x: e.offsetX, y: e.offsetY });
    moved = 0;
  });
  const jump = (e) => { view.y = size()[1] / 2 - ((e.offsetY - map.y0) / map.s) * view.k; redraw(); };
  canvas.addEventListener("pointermove", (e) => {
    const p = pointers.get(e.pointerId);
    if (!p) {
      const n = map && e.offsetX > map.left ? null : under(e.offsetX, e.offsetY);
      if (n !== hovered) { hovered = n; redraw(); }
      if (n && view.k < NEAR && !n.open) tip.show(e, [n.title, n.line]); else tip.hide();
      canvas.style.cursor = n ? "pointer" : "grab";
      return;
    }
    if (p.map) { if (map) jump(e); return; }
    const before = [...pointers.values()].map((q) => [q.x, q.y]);
    const dx = e.offsetX - p.x, dy = e.offsetY - p.y;
    p.x = e.offsetX; p.y = e.offsetY;
    moved += Math.abs(dx) + Math.abs(dy);
    if (before.length === 2) {
      const [a, b] = [...pointers.values()], now = Math.hypot(a.x - b.x, a.y - b.y), then = Math.hypot(before[0][0] - before[1][0], before[0][1] - before[1][1]);
      pinch = then ? now / then : 1;
      zoomAt((a.x + b.x) / 2, (a.y + b.y) / 2, pinch);
    }
    view.x += dx / pointers.size;
    view.y += dy / pointers.size;
    redraw();
  });
  const release = (e) => {
    const p = pointers.get(e.pointerId);
    pointers.delete(e.pointerId);
    if (!p || p.map || moved > 4 || e.type !== "pointerup") return;
    const n = under(e.offsetX, e.offsetY);
    const x = n && (e.offsetX - view.x) / view.k, y = n && (e.offsetY - view.y) / view.k;
    if (isFold(n) && x > n.ax + n.w / 2 - 26 && y < n.ay - n.h / 2 + 26) onfold(n); else select(n);
  };
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, release);
  canvas.addEventListener("pointerleave", () => { hovered = null; tip.hide(); redraw(); });
  canvas.addEventListener("dblclick", (e) => { const n = under(e.offsetX, e.offsetY); if (isFold(n)) onfold(n); });
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 30 : 1;
    if (e.ctrlKey || e.metaKey || e.altKey) zoomAt(e.offsetX, e.offsetY, Math.exp(-e.deltaY * unit * 0.008));
    else if (e.shiftKey) { view.x -= (e.deltaX || e.deltaY) * unit; redraw(); } else { view.x -= e.deltaX * unit; view.y -= e.deltaY * unit; redraw(); }
  }, { passive: false });
  const middle = () => size().map((v) => v / 2);
  const nearest = () => {
    const [w, h] = middle();
    return flat.reduce((best, n) => (!best || Math.abs(n.ay - (h - view.y) / view.k) < Math.abs(best.ay - (h - view.y) / view.k) ? n : best), null);
  };
  const go = (by) => {
    if (!flat.length) return;
    const at = selected ? flat.indexOf(selected) + by : flat.indexOf(nearest());
    select(flat[Math.max(0, Math.min(flat.length - 1, at))], { go: true });
  };
  canvas.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const does = {
      ArrowUp: () => { view.y += 60; redraw(); }, ArrowDown: () => { view.y -= 60; redraw(); }, ArrowLeft: () => { view.x += 60; redraw(); }, ArrowRight: () => { view.x -= 60; redraw(); },
      PageDown: () => { view.y -= size()[1] * 0.8; redraw(); }, PageUp: () => { view.y += size()[1] * 0.8; redraw(); }, Home: start,
      "+": () => zoomAt(...middle(), 1.25), "=": () => zoomAt(...middle(), 1.25), "-": () => zoomAt(...middle(), 0.8), f: fit, 0: fit,
      j: () => go(1), k: () => go(-1), Enter: () => isFold(selected) && onfold(selected), Escape: () => select(null),
    }[e.key];
    if (does) { e.preventDefault(); e.stopPropagation(); does(); }
  });

  return {
    canvas, redraw, fit, start, select, zoom: (f) => zoomAt(...middle(), f),
    show(layoutFound, { keep = null, at = null } = {}) {
      const anchor = keep && flat.find((n) => n.path === keep), spot = anchor && [anchor.ax * view.k + view.x, (anchor.ay - anchor.h / 2) * view.k + view.y];
      const chosen = selected && selected.path;
      found = layoutFound;
      flat = [];
      settle(found.nodes, found.edges, 0, 0, 0);
      selected = flat.find((n) => n.path === chosen) || null;
      const again = keep && flat.find((n) => n.path === keep);
      if (spot && again) { view.x = spot[0] - again.ax * view.k; view.y = spot[1] - (again.ay - again.h / 2) * view.k; redraw(); } else if (at) { view.x = at.x; view.y = at.y; view.k = at.k; redraw(); } else start();
    },
    mark(paths) { marked = paths; redraw(); },
    node: (test) => flat.find(test),
    get view() { return { ...view }; },
    get found() { return found; },
  };
};
