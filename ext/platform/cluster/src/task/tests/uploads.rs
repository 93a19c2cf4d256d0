//! Inputs of a request are opened, checked and uploaded from real directories.

use super::*;
use crate::layers::{LayerCache, LayerStore};
use crate::names::SubmitterName;
use std::path::Path;
use wp_codebox_contracts::CodedError;

struct Site {
    work: tempfile::TempDir,
    objects: MemoryObjects,
    store: LayerStore,
}

impl Site {
    fn new() -> Self {
        let work = tempfile::tempdir().unwrap();
        for (path, content) in [
            ("site/wp-load.php", "core"),
            ("site/wp-config.php", "password"),
            ("site/wp-content/plugins/p/p.php", "plugin"),
            ("site/wp-content/plugins/p/.git/HEAD", "ref"),
            ("staged.txt", "staged"),
            ("state/keys/host.ed25519", "key"),
        ] {
            let path = work.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let store = LayerStore::new(work.path());
        Self {
            work,
            objects: MemoryObjects::default(),
            store,
        }
    }

    fn path(&self, name: &str) -> String {
        let root = std::fs::canonicalize(self.work.path()).unwrap();
        root.join(name).to_str().unwrap().to_owned()
    }

    fn request(&self, source: &str, staged: &str) -> RunRequest {
        request(json!({
            "schema": "wp-codebox/run-request/v1", "run_id": run_id(), "site": "site-1",
            "paths": {"state_dir": self.path("state"), "share_dir": "/s", "launcher": "/l",
                "php_binary": "/p", "wordpress": self.path("site"),
                "denied": [self.path("site")], "code_roots": [self.path("site/wp-content/plugins")]},
            "task": {"schema": "wp-codebox/task-input/v1", "version": 1, "goal": "g",
                "staged_files": [{"source": staged, "target": "/run/codebox/staged/a"}]},
            "mounts": [{"source": source, "target": "/workspace/p"}],
        }))
    }

    fn submit(&self, request: RunRequest) -> Result<ClusterTask, TaskError> {
        let wordpress = PackRules::only(&["wp-load.php"]);
        let paths = request.paths.clone();
        let mut inputs = UploadedInputs::new(&self.objects, &self.store, paths, wordpress);
        let (task, _) = ClusterTask::of_request(request, &mut inputs)?;
        Ok(task)
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn submitted_directories_and_files_are_the_ones_that_a_node_mounts() {
    let site = Site::new();
    let plugin = site.path("site/wp-content/plugins/p");
    let request = site.request(&plugin, &site.path("staged.txt"));
    let task = site.submit(request).unwrap();
    assert_eq!(task.mounts[0].work_tree, WorkTree::Inside);
    let root = tempfile::tempdir().unwrap();
    let cache = LayerCache::open(root.path()).unwrap();
    let submitter = SubmitterName::new("team").unwrap();
    let held: Vec<_> = task
        .inputs()
        .into_iter()
        .map(|digest| {
            (
                cache.get(&site.objects, &submitter, &digest).unwrap(),
                digest,
            )
        })
        .collect();
    let places = held
        .iter()
        .map(|(layer, digest)| (digest.clone(), layer.path().to_owned()))
        .collect();
    let digest = task.digest().unwrap();
    let node = task
        .into_request(&digest, 1, node(), &places, SecretValues::default())
        .unwrap();
    let wordpress = Path::new(&node.paths.wordpress);
    assert_eq!(read(&wordpress.join("wp-load.php")), "core");
    assert!(!wordpress.join("wp-config.php").exists());
    let mount = Path::new(&node.mounts[0].source);
    assert_eq!(read(&mount.join("p.php")), "plugin");
    assert!(!mount.join(".git").exists());
    assert_eq!(node.mounts[0].git, GitChoice::Baseline);
    let staged = &node.task.unwrap().staged_files[0].source;
    assert_eq!(read(Path::new(staged)), "staged");
    // The mount rules of the node accept these sources and no others.
    let authority = wp_codebox_policy::MountAuthority { paths: &node.paths };
    let check = |path: &str| wp_codebox_policy::check_source(path, "x", authority).is_ok();
    assert!(check(&node.mounts[0].source));
    assert!(!check("/srv/other"));
}

#[test]
fn layers_that_the_server_lost_are_uploaded_again_by_confirm() {
    let site = Site::new();
    let plugin = site.path("site/wp-content/plugins/p");
    let request = site.request(&plugin, &site.path("staged.txt"));
    let wordpress = PackRules::only(&["wp-load.php"]);
    let paths = request.paths.clone();
    let mut inputs = UploadedInputs::new(&site.objects, &site.store, paths, wordpress);
    let (task, _) = ClusterTask::of_request(request, &mut inputs).unwrap();
    assert_eq!(inputs.confirm().unwrap(), 0);
    site.objects.lock().clear();
    assert_eq!(inputs.confirm().unwrap(), 3);
    let stored: Vec<String> = site.objects.lock().keys().cloned().collect();
    let wanted: Vec<String> = task.inputs().iter().map(|d| format!("layer.{d}")).collect();
    assert_eq!(stored, wanted);
}

#[test]
fn sources_that_the_mount_rules_of_the_submitting_host_deny_are_not_uploaded() {
    let site = Site::new();
    let (plugin, staged) = (
        site.path("site/wp-content/plugins/p"),
        site.path("staged.txt"),
    );
    std::os::unix::fs::symlink(site.path("state"), site.path("link")).unwrap();
    for (source, file, code) in [
        (site.path("state"), staged.clone(), ErrorCode::MountDenied),
        (site.path("link"), staged.clone(), ErrorCode::MountDenied),
        (site.path("site"), staged.clone(), ErrorCode::MountDenied),
        ("/etc".to_owned(), staged.clone(), ErrorCode::MountDenied),
        (
            site.path("missing"),
            staged.clone(),
            ErrorCode::MountSourceInvalid,
        ),
        (
            "relative".to_owned(),
            staged.clone(),
            ErrorCode::MountSourceInvalid,
        ),
        (
            plugin.clone(),
            site.path("state/keys/host.ed25519"),
            ErrorCode::MountDenied,
        ),
        (
            plugin.clone(),
            site.path("site/wp-config.php"),
            ErrorCode::MountDenied,
        ),
        (
            plugin.clone(),
            site.path("state"),
            ErrorCode::MountSourceInvalid,
        ),
        (
            plugin.clone(),
            "/dev/null".to_owned(),
            ErrorCode::MountSourceInvalid,
        ),
    ] {
        let error = site.submit(site.request(&source, &file)).unwrap_err();
        assert_eq!(error.code(), code, "{source} {file}: {error}");
        assert!(!error.to_string().contains(&site.path("")), "{error}");
    }
    let names: Vec<String> = site.objects.lock().keys().cloned().collect();
    assert!(
        !names.iter().any(|name| name.starts_with("task.")),
        "{names:?}"
    );
    site.submit(site.request(&plugin, &staged)).unwrap();
}
