//! Checks the layers of the crate `supervisor`: the modules of its `lib.rs`, lowest first. A file may use
//! its own layer and lower ones.

use super::graph::Graph;

pub(super) const CRATE: &str = "supervisor";
pub(super) const LIST: &str = "ext/run/supervisor/src/lib.rs";
/// The same file in the graph; it may use every layer.
const TOP: &str = "lib.rs";

/// Returns a finding for each use of a higher layer, and for each file that is in no layer.
pub(super) fn check(list: &str, graph: &Graph) -> Vec<String> {
    let layers: Vec<&str> = list
        .lines()
        .filter_map(|line| {
            line.strip_prefix("pub ")
                .unwrap_or(line)
                .strip_prefix("mod ")
        })
        .filter_map(|line| line.strip_suffix(';'))
        .collect();
    let layer = |file: &str| match file {
        TOP => Some(layers.len()),
        _ => layers.iter().position(|layer| is_in(file, layer)),
    };
    let files = graph.files.iter().filter(|file| layer(file).is_none());
    let unknown = files.map(|file| format!("{CRATE}: {file} is in no layer of {LIST}"));
    let arrows = graph.arrows.keys().map(|(user, used)| [*user, *used]);
    let up = arrows.filter_map(|arrow| {
        let [user, used] = arrow.map(|file| graph.files[file].as_str());
        let (low, high) = (layer(user)?, layer(used)?);
        (low < high).then(|| {
            let high = layers.get(high).unwrap_or(&TOP);
            format!("{CRATE}: {user} (layer {low}) uses {used} (layer {high}); move the code that both need to layer {low} or below", low = layers[low])
        })
    });
    unknown.chain(up).collect()
}

/// Returns whether a file is the module itself or in a directory below it.
fn is_in(file: &str, module: &str) -> bool {
    let rest = file.strip_prefix(module);
    rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}
