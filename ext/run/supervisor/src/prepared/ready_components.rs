//! Components (host code that WordPress loads, such as plugins) that are ready to be mounted into
//! guests.

use super::materialise::{Materialised, materialise};
use crate::request::components::{OpenComponents, entry, unavailable};
use crate::request::generated;
use crate::request::scratch_space::ScratchSpace;
use serde_json::{Value, json};
use std::os::fd::AsFd;
use wp_codebox_backend_native::{PlannedComponent, PlannedComponents};
use wp_codebox_contracts::{Component, ErrorBody, RunRequest};
use wp_codebox_runtime::RunDir;

/// A component that is ready to be mounted into guests.
#[derive(Debug)]
pub(crate) struct ReadyComponent {
    pub component: Component,
    pub entry: String,
    pub shown: Materialised,
}

/// Generates the directories of those components that are made from an archive or text, and finds
/// the entry file of each. `first` is the mount index of the first component.
pub(crate) fn make(
    open: &mut OpenComponents,
    request: &RunRequest,
    first: usize,
    run_dir: &RunDir,
) -> Result<(), ErrorBody> {
    for (position, row) in open.rows.iter_mut().enumerate() {
        let slug = &row.component.slug;
        if let Some(made) = generated::of(request, slug) {
            generated::build(&mut row.mount, made, run_dir, first + position)?;
            row.entry = entry(row.mount.source.as_fd(), &row.component)
                .map_err(|why| unavailable(slug, &why))?;
        }
    }
    Ok(())
}

/// Decides for each component whether guests get the directory itself or a copy. `first` is the
/// mount index of the first component.
pub(crate) fn ready(
    open: OpenComponents,
    first: usize,
    space: ScratchSpace<'_>,
) -> Result<Vec<ReadyComponent>, ErrorBody> {
    open.rows
        .into_iter()
        .enumerate()
        .map(|(position, row)| {
            Ok(ReadyComponent {
                shown: materialise(first + position, row.mount, space)?,
                component: row.component,
                entry: row.entry,
            })
        })
        .collect()
}

/// Returns the components in the form that the launcher needs: the directories to mount, and the
/// list from which the guest's WordPress loads them.
pub(crate) fn planned(components: &[ReadyComponent]) -> PlannedComponents {
    let list: Vec<Value> = components
        .iter()
        .map(|row| {
            json!({
                "slug": row.component.slug,
                "load_as": row.component.load_as,
                "entry": row.entry,
            })
        })
        .collect();
    PlannedComponents {
        rows: components
            .iter()
            .map(|row| PlannedComponent {
                lowers: row.shown.lowers.clone(),
                target: row.shown.mount.target.clone(),
            })
            .collect(),
        list: Value::Array(list).to_string(),
    }
}
