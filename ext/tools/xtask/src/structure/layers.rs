//! Checks the layers of the crate `supervisor`. `layers.txt` lists them, lowest first, with the
//! modules of each. A file may use its own layer and lower ones.

use super::graph::Graph;

pub(super) const LIST: &str = "ext/tools/xtask/layers.txt";
pub(super) const CRATE: &str = "supervisor";

/// Returns a finding for each use of a higher layer, and for each file that is in no layer.
pub(super) fn check(list: &str, graph: &Graph) -> Vec<String> {
    let layers: Vec<(&str, Vec<&str>)> = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(": "))
        .map(|(name, modules)| (name, modules.split(' ').collect()))
        .collect();
    let layer = |file: &str| {
        layers
            .iter()
            .position(|(_, modules)| modules.iter().any(|module| is_in(file, module)))
    };
    let files = graph.files.iter().filter(|file| layer(file).is_none());
    let unknown = files.map(|file| format!("{LIST}: {CRATE} {file} has no layer"));
    let arrows = graph.arrows.keys().map(|(user, used)| [*user, *used]);
    let up = arrows.filter_map(|arrow| {
        let [user, used] = arrow.map(|file| graph.files[file].as_str());
        let (low, high) = (layer(user)?, layer(used)?);
        let [low_name, high_name] = [low, high].map(|layer| layers[layer].0);
        (low < high).then(|| {
            format!("{CRATE}: {user} (layer {low_name}) uses {used} (layer {high_name}); move the code that both need to layer {low_name} or below")
        })
    });
    unknown.chain(up).collect()
}

/// Returns whether a file is the module itself or in a directory below it.
fn is_in(file: &str, module: &str) -> bool {
    let rest = file.strip_prefix(module);
    rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}
