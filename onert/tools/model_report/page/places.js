// The stages of a subgraph, and the items drawn for a graph: operations, groups, inputs and outputs.
const stagesOf = (report, index) => (lookups(report).subgraph(index) || { stages: [] }).stages;
const stageTitle = (name) => (name === "file" ? "As in the file" : name === "compiled" ? "As compiled" : name.replaceAll("_", " "));

// The items of a graph: nodes for operations or fused groups, and edges between them.
// scene: {report, graph, subgraph (its index or null), compiled, stage}
const itemsOf = (scene, folded) => {
  const { report, graph } = scene, find = lookups(report);
  const own = scene.compiled && scene.subgraph !== null ? (find.subgraph(scene.subgraph) || {}).places : null;
  const nodes = [], of = new Array(graph.operations.length);
  if (own) {
    own.groups.forEach((group, number) => {
      if (group.operations.length < 2) return;
      const id = `g${number}`, open = !folded(id, "group");
      const node = { id, kind: "group", operations: group.operations, group: number, open };
      for (const at of group.operations) of[at] = node;
      nodes.push(node);
    });
  }
  graph.operations.forEach((_, at) => {
    if (of[at]) return;
    const op = find.operation(graph, at), bodies = bodiesOf(scene, op);
    const id = `o${at}`;
    of[at] = { id, kind: "operation", operations: [at], bodies, open: bodies.length > 0 && !folded(id, "body") };
    nodes.push(of[at]);
  });
  graph.inputs.forEach((tensor, at) => nodes.push({ id: `i${at}`, kind: "input", tensor, operations: [] }));
  graph.outputs.forEach((tensor, at) => nodes.push({ id: `r${at}`, kind: "output", tensor, operations: [] }));
  return { nodes, edges: edgesOf(graph, of, nodes), of };
};

const edgesOf = (graph, of, nodes) => {
  const maker = new Map(), known = new Map();
  graph.operations.forEach(([, , outs], at) => outs.forEach((o) => maker.set(o, of[at])));
  for (const node of nodes) if (node.kind === "input") maker.set(node.tensor, node);
  const edges = [];
  const join = (from, to, tensor) => {
    if (!from || from === to) return;
    const key = `${from.id}>${to.id}`, edge = known.get(key);
    if (edge) { if (!edge.tensors.includes(tensor)) edge.tensors.push(tensor); return; }
    const made = { from, to, tensors: [tensor] };
    known.set(key, made);
    edges.push(made);
  };
  graph.operations.forEach(([, ins], at) => ins.forEach((i) => { if (i !== null) join(maker.get(i), of[at], i); }));
  for (const node of nodes) if (node.kind === "output") join(maker.get(node.tensor), node, node.tensor);
  return edges;
};

// The graphs that an operation contains or calls, each with its scene.
const bodiesOf = (scene, op) => {
  const { report, compiled } = scene, find = lookups(report);
  const held = op.holds.map(([name, number]) => ({ name, scene: { report, graph: find.pool.graphs[number], subgraph: null, compiled } }));
  const called = [...new Set(op.calls)].filter((index) => find.subgraph(index)).map((index) => {
    const stages = stagesOf(report, index), stage = compiled ? stages[stages.length - 1] : stages[0];
    return { name: find.subgraph(index).name || `subgraph ${index}`, scene: { report, graph: find.pool.graphs[stage.graph], subgraph: index, compiled: stage.name === "compiled" } };
  });
  return [...held, ...called].filter((body) => body.scene.graph.operations.length);
};

// The text of a node: a title, and a line below.
const labelOf = (scene, node) => {
  const { report, graph } = scene, find = lookups(report);
  if (node.kind === "input" || node.kind === "output") {
    const t = find.tensor(graph, node.tensor);
    return [tensorName(t, node.tensor), t.type];
  }
  const kinds = node.operations.map((at) => find.operation(graph, at).kind);
  if (node.kind === "group") {
    const short = kinds.map((k) => k.replace(/^(Binary|Unary|Reduce|Pool2D|Comparison)\./, ""));
    const title = short.length > 3 ? `${short.slice(0, 3).join(" + ")} +${short.length - 3}` : short.join(" + ");
    return [title, `${node.operations.length} fused operations`];
  }
  const [, , outs] = graph.operations[node.operations[0]];
  return [kinds[0], outs.length ? find.tensor(graph, outs[0]).type : "no result"];
};
const familyOfNode = (scene, node) => {
  const find = lookups(scene.report);
  const all = node.operations.map((at) => find.operation(scene.graph, at).family);
  return ["contraction", "recurrent", "control_flow", "vision_audio", "reduction"].find((f) => all.includes(f)) || all[0] || "other";
};
