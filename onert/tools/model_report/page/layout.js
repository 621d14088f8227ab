// The layout of graphs. dagre lays out layered graphs well, but takes seconds for more than a few hundred nodes. A network
// is a long chain of blocks with few tensors between them, so the graph is cut where few edges cross, dagre lays out each
// piece, and the pieces are stacked. Identical blocks are laid out once.
const ROW = 26, COLUMN = 18, LONG = 18, LEAST = 4, MOST = 30, PADDING = 12, HEADER = 24;
const STRAY = 200; // how far a piece may be off-centre to make an edge into it straight
const measure = (() => {
  let context = null;
  const known = new Map();
  return (words, bold) => {
    const key = (bold ? "b" : "n") + words;
    if (!known.has(key)) {
      context = context || document.createElement("canvas").getContext("2d");
      context.font = bold ? `600 12.5px ${FONT}` : `11px ${FONT}`;
      known.set(key, context.measureText(words).width);
    }
    return known.get(key);
  };
})();

// Topological order by Kahn's algorithm with a stack, which keeps branches together.
const ordered = (nodes, edges) => {
  const after = new Map(nodes.map((n) => [n, []])), left = new Map(nodes.map((n) => [n, 0]));
  for (const e of edges) { after.get(e.from).push(e.to); left.set(e.to, left.get(e.to) + 1); }
  const place = (n) => (n.kind === "input" ? -1 : n.kind === "output" ? Infinity : n.operations[0]);
  const stack = nodes.filter((n) => !left.get(n)).sort((a, b) => place(b) - place(a)), found = [];
  while (stack.length) {
    const n = stack.pop();
    n.rank = n.rank || 0;
    found.push(n);
    for (const m of after.get(n).sort((a, b) => place(b) - place(a))) {
      m.rank = Math.max(m.rank || 0, n.rank + 1);
      left.set(m, left.get(m) - 1);
      if (!left.get(m)) stack.push(m);
    }
  }
  return found.length === nodes.length ? found : nodes;
};

const cut = (order, edges) => {
  const at = new Map(order.map((n, i) => [n, i])), reach = new Array(order.length).fill(-1);
  for (const e of edges) if (!e.long) reach[at.get(e.from)] = Math.max(reach[at.get(e.from)], at.get(e.to));
  const crossing = new Int32Array(order.length + 1); // at each position: nodes before it with readers after it
  reach.forEach((to, i) => { if (to > i) { crossing[i + 1]++; crossing[to + 1]--; } });
  for (let i = 1; i <= order.length; i++) crossing[i] += crossing[i - 1];
  const pieces = [];
  for (let start = 0; start < order.length;) {
    let best = Math.min(order.length, start + MOST);
    if (best < order.length) {
      for (let end = start + LEAST; end <= Math.min(order.length, start + MOST); end++) {
        const now = crossing[end], then = crossing[best];
        if (now < then || (now === then && end < best && now <= 1 && end >= start + LEAST * 2)) best = end;
      }
    }
    pieces.push(order.slice(start, best));
    start = best;
  }
  return pieces;
};

const shapes = new Map(); // layouts of pieces by their structure
const placePiece = (piece, inner) => {
  const at = new Map(piece.map((n, i) => [n, i]));
  const key = piece.map((n) => `${n.w}x${n.h}`).join() + ";" + inner.map((e) => `${at.get(e.from)}>${at.get(e.to)}`).join();
  if (!shapes.has(key)) shapes.set(key, chain(piece, inner, at) || byDagre(piece, inner, at));
  return shapes.get(key);
};
const chain = (piece, inner, at) => {
  if (inner.length !== piece.length - 1 || inner.some((e) => at.get(e.to) !== at.get(e.from) + 1)) return null;
  const w = Math.max(...piece.map((n) => n.w));
  let y = 0;
  const points = piece.map((n) => { const p = [w / 2, y + n.h / 2]; y += n.h + ROW; return p; });
  return { w, h: y - ROW, points, bends: inner.map(() => null) };
};
const byDagre = (piece, inner, at) => {
  const g = new dagre.graphlib.Graph();
  g.setGraph({ rankdir: "TB", nodesep: COLUMN, edgesep: 12, ranksep: ROW, ranker: "longest-path" });
  g.setDefaultEdgeLabel(() => ({}));
  piece.forEach((n, i) => g.setNode(String(i), { width: n.w, height: n.h }));
  inner.forEach((e) => g.setEdge(String(at.get(e.from)), String(at.get(e.to))));
  dagre.layout(g);
  const { width, height } = g.graph();
  return {
    w: width, h: height,
    points: piece.map((_, i) => { const n = g.node(String(i)); return [n.x, n.y]; }),
    bends: inner.map((e) => g.edge(String(at.get(e.from)), String(at.get(e.to))).points.slice(1, -1).map((p) => [p.x, p.y])),
  };
};

const sized = (scene, node, folded, path) => {
  const [title, line] = labelOf(scene, node);
  Object.assign(node, { title, line, family: familyOfNode(scene, node), path: `${path}/${node.id}`, inner: null, scene });
  if (node.open) {
    node.inner = node.kind === "group" ? innerGroup(scene, node, folded) : innerBodies(node, folded);
    const wide = Math.max(node.inner.w + 2 * PADDING, measure(title, true) + 60);
    Object.assign(node, { w: Math.ceil(wide), h: Math.ceil(node.inner.h + HEADER + 2 * PADDING) });
    return;
  }
  const beside = (scene.report.profile && scene.compiled ? 40 : 0) + (node.kind === "group" || (node.bodies && node.bodies.length) ? 18 : 0);
  const wide = Math.min(280, Math.max(measure(title, true) + beside, measure(line, false)) + 30);
  Object.assign(node, { w: Math.ceil(wide / 12) * 12, h: node.kind === "input" || node.kind === "output" ? 34 : 42 });
};
const innerGroup = (scene, node, folded) => {
  const { nodes } = { nodes: node.operations.map((at) => ({ id: `o${at}`, kind: "operation", operations: [at], bodies: [], open: false })) };
  const of = [];
  nodes.forEach((n) => { of[n.operations[0]] = n; });
  const partial = { ...scene.graph, operations: scene.graph.operations.map((o, at) => (of[at] ? o : [o[0], [], []])), inputs: [], outputs: [] };
  return whole(layout({ ...scene, graph: scene.graph }, { nodes, edges: edgesOf(partial, of, nodes) }, folded, node.path));
};
const innerBodies = (node, folded) => {
  let x = 0, h = 0;
  const boxes = node.bodies.map((body) => {
    const path = `${node.path}/${body.name}`;
    const found = whole(layout(body.scene, itemsOf(body.scene, (id, kind) => folded(id, kind, path)), folded, path));
    const title = body.name, box = { title, x, y: 18, found };
    x += Math.max(found.w, measure(title, false)) + 24;
    h = Math.max(h, found.h + 18);
    return box;
  });
  return { w: x - 24, h, nodes: boxes.flatMap((b) => shifted(b.found, b.x, b.y)), edges: boxes.flatMap((b) => b.found.edges), captions: boxes.map((b) => [b.title, b.x, 6]) };
};
const shifted = (found, dx, dy) => {
  found.nodes.forEach((n) => { n.x += dx; n.y += dy; });
  found.edges.forEach((e) => { e.points = e.points.map(([x, y]) => [x + dx, y + dy]); });
  return found.nodes;
};
const whole = (steps) => { let last = steps.next(); while (!last.done) last = steps.next(); return last.value; };

// Lay out items piece by piece. It is a generator, so that the page stays responsive while a large graph is laid out.
// Returns {nodes, edges, w, h}: nodes have x, y (of their centre), w, h, and `inner` if they are expanded.
function* layout(scene, { nodes, edges }, folded, path = "") {
  nodes.forEach((n) => sized(scene, n, folded, path));
  const order = ordered(nodes, edges);
  edges.forEach((e) => { e.long = e.to.rank - e.from.rank > LONG; });
  const pieceOf = new Map(), pieces = cut(order, edges);
  pieces.forEach((piece, at) => piece.forEach((n) => pieceOf.set(n, at)));
  const inner = pieces.map(() => []), between = pieces.map(() => []);
  for (const e of edges) {
    if (!e.long && pieceOf.get(e.from) === pieceOf.get(e.to)) inner[pieceOf.get(e.from)].push(e);
    else if (!e.long) between[pieceOf.get(e.to)].push(e);
  }
  let y = 0, least = 0, most = 0;
  for (let at = 0; at < pieces.length; at++) {
    const piece = pieces[at], found = placePiece(piece, inner[at]);
    const own = new Map(piece.map((n, i) => [n, found.points[i]]));
    const joins = between[at].filter((e) => pieceOf.get(e.from) === at - 1 || between[at].length === 1);
    const straight = joins.reduce((s, e) => s + e.from.x - own.get(e.to)[0], 0) / (joins.length || 1);
    const shift = joins.length && Math.abs(straight + found.w / 2) <= STRAY ? straight : -found.w / 2;
    piece.forEach((n) => { const p = own.get(n); n.x = p[0] + shift; n.y = p[1] + y; });
    inner[at].forEach((e, i) => { e.bends = (found.bends[i] || []).map(([bx, by]) => [bx + shift, by + y]); });
    least = Math.min(least, shift);
    most = Math.max(most, shift + found.w);
    y += found.h + ROW + Math.min(40, Math.max(0, between[at + 1] ? between[at + 1].length - 1 : 0) * 6);
    if (at % 4 === 3) yield { nodes: order.slice(0, 1), done: at / pieces.length };
  }
  for (const e of edges) e.points = [[e.from.x, e.from.y + e.from.h / 2], ...(e.bends || []), [e.to.x, e.to.y - e.to.h / 2]];
  const result = { nodes: order, edges, w: most - least, h: Math.max(0, y - ROW), scene };
  shifted(result, -least, 0);
  return result;
}
