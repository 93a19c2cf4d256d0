//! Files that the first step of a run copies to paths where the guest may change them.

use crate::model::Recipe;
use crate::overlay;
use crate::places::{FileView, file_view, is_file, mounts, staged_mount};
use crate::sources::Sources;
use wp_codebox_contracts::CommandCall;

/// Returns the files that the first step of the run copies: guest paths of the source and target.
pub(crate) fn copies(recipe: &Recipe, sources: &dyn Sources) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (index, (_, mount)) in mounts(recipe).into_iter().enumerate() {
        if is_file(mount.kind, &mount.source, sources)
            && file_view(&mount.target, mount.mode) == Some(FileView::Copied)
        {
            all.push((staged_mount(index), mount.target));
        }
    }
    for (index, file) in overlay::files(recipe).into_iter().enumerate() {
        if file_view(&file.target, Some(file.mode)) == Some(FileView::Copied) {
            all.push((overlay::staged(index), file.target));
        }
    }
    all
}

/// Returns the step that copies files to their paths in the guest.
pub(crate) fn copy_call(copies: &[(String, String)]) -> CommandCall {
    let pairs = crate::php_source::php_literal(&serde_json::json!(copies));
    let code = format!(
        "code=foreach ( {pairs} as list( $from, $to ) ) {{ ( is_dir( dirname( $to ) ) || mkdir( dirname( $to ), 0755, true ) ) && copy( $from, $to ) || exit( 1 ); chmod( $to, 0644 ); }}"
    );
    CommandCall {
        command: "wordpress.run-php".to_owned(),
        args: vec![code, "bootstrap=none".to_owned()],
    }
}
