//! Runs one program in one guest (a sandbox with its own WordPress): a minimal example of this
//! crate, also run by the benchmark.
//!
//! `load_wordpress STATE SHARE LAUNCHER PHP WORDPRESS` builds a guest from the cached WordPress
//! template, loads WordPress in it and ends. It must not be run as root: the launcher refuses to
//! map host uid 0.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};
use wp_codebox_backend_native::{
    Cgroup, ExecCall, ExecEnd, Guest, GuestEgress, GuestIdentity, GuestSpec, HostLayout, KillCause,
    LaunchOptions, NoSandbox, PhpLayout, ScratchStorage, TemplateAccess, TemplateRequest,
    build_plan, ensure_template, environment,
};
use wp_codebox_contracts::{
    ExecLimits, ExecRequest, ExecTerminal, ExecutionId, GuestPath, IsolationLevel, Limits,
};

const PROGRAM: &str = "require '/wordpress/wp-load.php'; echo get_bloginfo('version'), \"\\n\";";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [state, share, launcher, php, wordpress] = arguments.as_slice() else {
        return Err("usage: load_wordpress STATE SHARE LAUNCHER PHP WORDPRESS".into());
    };
    let launcher = Path::new(launcher);
    let host = HostLayout::probe();
    let identity = GuestIdentity::shared("this example requests no uid of its own");
    let php = PhpLayout::discover(Path::new(php), Path::new(state))?;
    let template = ensure_template(&TemplateRequest {
        wordpress: Path::new(wordpress),
        state_dir: Path::new(state),
        share_dir: Path::new(share),
        launcher,
        sandbox: &NoSandbox,
        php: &php,
        host: &host,
        database: wp_codebox_backend_native::Database::Sqlite,
        level: wp_codebox_contracts::IsolationLevel::Full,
        identity: &identity,
    })?;
    let plan = build_plan(&GuestSpec {
        host: &host,
        php: &php,
        share_dir: share,
        template: &template,
        template_access: TemplateAccess::Run,
        mounts: &[],
        content: &[],
        components: &wp_codebox_backend_native::PlannedComponents::default(),
        task_json: "",
        staged: &[],
        programs: &[],
        limits: Limits::default(),
        egress: &GuestEgress::Denied,
    })?;
    let options = LaunchOptions {
        launcher,
        sandbox: &NoSandbox,
        ready_timeout: Duration::from_secs(30),
        cgroup: &Cgroup::none("this example creates no cgroup"),
        identity: &identity,
        scratch: &ScratchStorage::Memory,
        used: &std::sync::Arc::default(),
    };
    let mut guest = Guest::launch(&plan, &options)?;
    if guest.report().level != IsolationLevel::Full {
        return Err("the guest did not reach isolation level full, so its times would not be comparable; run `wp-codebox doctor` to see why".into());
    }
    let request = ExecRequest {
        id: ExecutionId::new("exec-1")?,
        argv: vec!["php".into(), "-r".into(), PROGRAM.into()],
        env: environment(),
        cwd: GuestPath::new("/wordpress")?,
        limits: ExecLimits::default(),
        terminal: ExecTerminal::None,
    };
    let call = ExecCall {
        request: &request,
        stdin: b"",
        deadline: Instant::now() + Duration::from_secs(30),
        output_limit: 64 * 1024,
    };
    let mut output = Vec::new();
    let execution = guest.exec(&call, &mut |_, bytes| output.extend_from_slice(bytes))?;
    guest.kill(KillCause::Finished);
    print!("{}", String::from_utf8_lossy(&output));
    match execution.end {
        ExecEnd::Exited(0) if !output.is_empty() => Ok(()),
        end => Err(format!("WordPress did not load: {end:?}").into()),
    }
}
