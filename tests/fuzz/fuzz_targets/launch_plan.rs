//! The launcher's parser of launch plans (the description of a guest's mounts and programs).
//!
//! An accepted plan satisfies the rules that the launcher does not check again later, e.g. that
//! no mount covers the root.
#![no_main]

#[allow(dead_code)]
#[path = "../../../ext/isolation/launcher/src/error.rs"]
mod error;
#[allow(dead_code)]
#[path = "../../../ext/isolation/launcher/src/plan.rs"]
mod plan;

use libfuzzer_sys::fuzz_target;
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use wp_codebox_contracts::{BindSource, HostSource, LaunchMount, LaunchPlan};

fn file(bytes: &[u8]) -> Option<OwnedFd> {
    let file = memfd_create("plan", MemfdFlags::CLOEXEC).ok()?;
    let written = rustix::io::write(&file, bytes).ok()?;
    assert_eq!(written, bytes.len());
    seek(&file, SeekFrom::Start(0)).ok()?;
    Some(file)
}

fn assert_source(source: &HostSource) {
    assert!(source.path.starts_with('/') && source.path != "/" && !source.path.contains('\0'));
    assert!(!source.path.split('/').any(|part| part == ".."));
}

fuzz_target!(|data: &[u8]| {
    let Ok(plan) = plan::read(file(data).expect("a memory file")) else {
        return;
    };
    assert_ne!(plan.guest_id, 0);
    assert!(plan.writable.iter().all(|path| path.as_str() != "/"));
    for mount in &plan.mounts {
        match mount {
            LaunchMount::Bind { source, target, .. } => {
                assert_ne!(target.as_str(), "/");
                if let BindSource::Host(source) = source {
                    assert_source(source);
                }
            }
            LaunchMount::Overlay { lowers, target, .. } => {
                assert_ne!(target.as_str(), "/");
                assert!(!lowers.is_empty());
                lowers.iter().for_each(assert_source);
            }
            LaunchMount::Merged { lowers, target } => {
                assert_ne!(target.as_str(), "/");
                assert!(lowers.len() >= 2);
                lowers.iter().for_each(assert_source);
            }
            LaunchMount::Directory { target }
            | LaunchMount::Symlink { target, .. }
            | LaunchMount::Scratch { target, .. } => assert_ne!(target.as_str(), "/"),
            LaunchMount::File(entry) => assert_ne!(entry.target.as_str(), "/"),
            LaunchMount::Proc | LaunchMount::Dev => {}
        }
    }
    let text = serde_json::to_vec(&plan).expect("a plan is JSON");
    let again: LaunchPlan =
        plan::read(file(&text).expect("a memory file")).expect("an accepted plan is acceptable");
    assert_eq!(again, plan);
});
