//! Measures launches on this machine; prints one JSON object with raw samples.
//!
//! `launch_cost LAUNCHER STATE SHARE WORDPRESS PHP ROUNDS`, as an unprivileged user.
//! Interleaves: finding the template, bare launch with /bin/true, WordPress in a guest, and the same PHP with
//! the same opcode cache on the host.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wp_codebox_backend_native::{
    ExecCall, Guest, GuestSpec, HostLayout, KillCause, LaunchOptions, NoSandbox, PhpLayout,
    Template, TemplateAccess, TemplateRequest, build_plan, ensure_template, environment, php_ini,
};
use wp_codebox_contracts::{ExecLimits, ExecRequest, ExecutionId, GuestPath, Limits};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Wall and CPU milliseconds.
type Sample = (f64, f64);

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [launcher, state, share, wordpress, php, rounds] = arguments.as_slice() else {
        return Err("usage: launch_cost LAUNCHER STATE SHARE WORDPRESS PHP ROUNDS".into());
    };
    let (launcher, state) = (Path::new(launcher), Path::new(state));
    let php = PhpLayout::discover(Path::new(php), state)?;
    let host = HostLayout::probe();
    let template_request = TemplateRequest {
        wordpress: Path::new(wordpress),
        state_dir: state,
        share_dir: Path::new(share),
        launcher,
        sandbox: &NoSandbox,
        php: &php,
        host: &host,
    };
    let template = ensure_template(&template_request)?;
    let plan = build_plan(&GuestSpec {
        host: &host,
        php: &php,
        share_dir: share,
        template: &template,
        template_access: TemplateAccess::Run,
        mounts: &[],
        task_json: "",
        staged: &[],
        limits: Limits::default(),
    })?;
    let options = LaunchOptions {
        launcher,
        sandbox: &NoSandbox,
        ready_timeout: Duration::from_secs(20),
    };
    let in_guest = |argv: &[&str]| -> Fallible<Sample> {
        let start = Instant::now();
        let mut guest = Guest::launch(&plan, &options)?;
        let request = ExecRequest {
            id: ExecutionId::new("measure")?,
            argv: argv.iter().map(|&a| a.to_owned()).collect(),
            env: environment(),
            cwd: GuestPath::new("/tmp")?,
            limits: ExecLimits::default(),
        };
        let call = ExecCall {
            request: &request,
            stdin: &[],
            deadline: Instant::now() + Duration::from_secs(60),
            output_limit: 4096,
        };
        let execution = guest.exec(&call, &mut |_, _| {})?;
        let end = guest.kill(KillCause::Finished);
        if execution.end != wp_codebox_backend_native::ExecEnd::Exited(0) {
            return Err(format!("{execution:?}").into());
        }
        let cpu = (end.user_us + end.system_us) as f64 / 1000.0;
        Ok((start.elapsed().as_secs_f64() * 1000.0, cpu))
    };
    let bare = Bare::prepare(state, share, &php, &template)?;
    bare.run()?;
    bare.run()?;
    let load = "require '/wordpress/wp-load.php';";
    let (mut floor, mut guests, mut bares) = (Vec::new(), Vec::new(), Vec::new());
    let mut hits = Vec::new();
    for _ in 0..rounds.parse::<u32>()? {
        let (start, before) = (Instant::now(), thread_cpu());
        ensure_template(&template_request)?;
        let cpu = thread_cpu() - before;
        hits.push((start.elapsed().as_secs_f64() * 1000.0, cpu));
        floor.push(in_guest(&["/bin/true"])?);
        guests.push(in_guest(&["php", "-r", load])?);
        bares.push(bare.run()?);
    }
    fs::remove_dir_all(&bare.root)?;
    println!(
        "{}",
        serde_json::json!({"template_hit": hits, "floor": floor, "guest_wp_load": guests, "bare_wp_load": bares})
    );
    Ok(())
}

/// CPU milliseconds of this thread so far.
fn thread_cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1000.0 + time.tv_nsec as f64 / 1e6
}

/// The same WordPress on the host, with an opcode cache of its own at its own path.
struct Bare {
    root: std::path::PathBuf,
    binary: String,
}

impl Bare {
    fn prepare(state: &Path, share: &str, php: &PhpLayout, template: &Template) -> Fallible<Self> {
        let (core, content) = (template.core.as_str(), template.content.as_str());
        let root = state.join(format!("bare-{}", std::process::id()));
        fs::create_dir(&root)?;
        let site = root.join("wordpress");
        let copy =
            |from: &str, to: &Path| Command::new("cp").arg("-rpT").arg(from).arg(to).status();
        copy(core, &site)?;
        fs::remove_dir(site.join("wp-content"))?;
        copy(content, &site.join("wp-content"))?;
        // The drop-in names the share directory as the guest sees it.
        let drop_in = site.join("wp-content/db.php");
        fs::write(
            &drop_in,
            fs::read_to_string(&drop_in)?.replace("/opt/codebox", share),
        )?;
        fs::create_dir(root.join("opcache"))?;
        fs::create_dir(root.join("scan"))?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let ini = php_ini(php).replace("/var/cache/codebox/opcache", &text(&root.join("opcache")));
        fs::write(root.join("php.ini"), ini)?;
        Ok(Self {
            binary: php.binary.clone(),
            root,
        })
    }

    fn run(&self) -> Fallible<Sample> {
        let cpu = || -> Fallible<f64> {
            let stat = fs::read_to_string("/proc/self/stat")?;
            let rest = stat.rsplit(')').next().unwrap_or_default();
            let fields: Vec<&str> = rest.split_whitespace().collect();
            // cutime and cstime, in ticks of 10 ms.
            Ok((fields[13].parse::<f64>()? + fields[14].parse::<f64>()?) * 10.0)
        };
        let (start, before) = (Instant::now(), cpu()?);
        let load = format!("require '{}/wordpress/wp-load.php';", self.root.display());
        let status = Command::new(&self.binary)
            .env_clear()
            .env("PHP_INI_SCAN_DIR", self.root.join("scan"))
            .arg("-c")
            .arg(self.root.join("php.ini"))
            .args(["-r", &load])
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(status.to_string().into());
        }
        Ok((start.elapsed().as_secs_f64() * 1000.0, cpu()? - before))
    }
}
