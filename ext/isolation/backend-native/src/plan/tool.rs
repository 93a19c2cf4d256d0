//! Launch plan of a guest that runs one WASI tool of the host: system directories, the tool's files,
//! and at most one directory.
//!
//! The guest has no network, no PHP, no WordPress and no files of the host besides those. What the
//! tool writes goes to an overlay's upper directory, never to the host.

use super::GUEST_ID;
use super::builder::{Builder, path};
use super::error::PlanError;
use super::hide;
use crate::host::HostLayout;
use wp_codebox_contracts::{
    CallSet, HostSource, IsolationLevel, LaunchPlan, LaunchPurpose, Limits, PLAN_VERSION,
    PlanIdentity,
};
use wp_codebox_process_wrapper::{TOOL_FILES, TOOL_WORK};

/// Index of the layer with the changes of the tool.
pub const TOOL_LAYER: u32 = 0;

/// What a tool sees at [`TOOL_WORK`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolWork<'a> {
    /// Nothing.
    None,
    /// A host directory, read-only.
    Read(&'a str),
    /// An overlay over a host directory.
    Write(&'a str),
}

/// Input of [`tool_plan`].
#[derive(Debug, Clone, Copy)]
pub struct ToolPlan<'a> {
    /// System directories of the host.
    pub host: &'a HostLayout,
    /// Host directory with the runner and the tool's files, shown at [`TOOL_FILES`].
    pub files: &'a str,
    /// Directory that this call of the tool may use, if any.
    pub work: ToolWork<'a>,
    /// Resource limits of the guest.
    pub limits: Limits,
}

/// Builds the launch plan of a tool's guest.
pub fn tool_plan(spec: &ToolPlan<'_>) -> Result<LaunchPlan, PlanError> {
    let mut builder = Builder::default();
    // A runner that is linked dynamically needs the loader and the C library.
    builder.system(spec.host)?;
    hide(&mut builder, spec.host.hidden.iter())?;
    builder.bind(spec.files, TOOL_FILES)?;
    match spec.work {
        ToolWork::None => {}
        ToolWork::Read(directory) => builder.bind(directory, TOOL_WORK)?,
        ToolWork::Write(directory) => builder.overlay(
            vec![HostSource::of(directory)],
            path(TOOL_WORK)?,
            Some(TOOL_LAYER),
        ),
    }
    builder.scratch("/tmp", 0o1777)?;
    Ok(LaunchPlan {
        version: PLAN_VERSION,
        purpose: LaunchPurpose::Serve,
        level: IsolationLevel::Full,
        guest_id: GUEST_ID,
        identity: PlanIdentity::Shared,
        hostname: "tool".to_owned(),
        mounts: builder.mounts,
        writable: builder.writable,
        calls: CallSet::Programs,
        limits: spec.limits,
        scratch: None,
        egress: None,
        mail: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{SystemEntry, SystemEntryKind};
    use wp_codebox_contracts::{BindSource, GuestPath, LaunchMount};

    fn plan(work: ToolWork<'_>) -> LaunchPlan {
        let host = HostLayout {
            system: vec![SystemEntry {
                path: "/usr".to_owned(),
                kind: SystemEntryKind::Directory,
            }],
            etc: vec!["/etc/alternatives".to_owned()],
            hidden: Vec::new(),
        };
        tool_plan(&ToolPlan {
            host: &host,
            files: "/scratch/tool",
            work,
            limits: Limits::default(),
        })
        .unwrap()
    }

    fn binds(plan: &LaunchPlan) -> Vec<(&str, &str, bool)> {
        let bind = |mount| match mount {
            &LaunchMount::Bind {
                source: BindSource::Host(ref source),
                ref target,
                writable,
            } => Some((source.path.as_str(), target.as_str(), writable)),
            _ => None,
        };
        plan.mounts.iter().filter_map(bind).collect()
    }

    #[test]
    fn launch_plan_of_a_tool_binds_only_system_directories_its_files_and_its_work_directory() {
        let files = [("/usr", "/usr", false), ("/scratch/tool", "/tool", false)];
        assert_eq!(binds(&plan(ToolWork::None)), files);
        let read = plan(ToolWork::Read("/scratch/work"));
        let with_work = [&files[..], &[("/scratch/work", "/work", false)]].concat();
        assert_eq!(binds(&read), with_work);
        let writable: Vec<&str> = read.writable.iter().map(GuestPath::as_str).collect();
        assert_eq!(writable, ["/tmp"]);
        assert!(read.egress.is_none() && read.mail.is_none());
        assert_eq!(read.level, IsolationLevel::Full);
    }

    #[test]
    fn directory_that_the_tool_may_change_is_an_overlay_with_a_captured_layer() {
        let plan = plan(ToolWork::Write("/scratch/work"));
        let overlay = LaunchMount::Overlay {
            lowers: vec![HostSource::of("/scratch/work")],
            target: GuestPath::new("/work").unwrap(),
            capture: Some(TOOL_LAYER),
        };
        assert!(plan.mounts.contains(&overlay), "{plan:?}");
        assert!(binds(&plan).iter().all(|(_, _, writable)| !writable));
    }
}
