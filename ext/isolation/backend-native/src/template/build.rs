//! Builds a WordPress template: copies core, configures it, installs WordPress in a guest and fills
//! the opcode cache.

use super::error::TemplateError;
use super::files;
use super::fingerprint::{CORE_DIRECTORIES, CORE_FILES, Parts};
use super::record::{FORMAT, Record, Template, TemplateRequest};
use crate::cgroup::Cgroup;
use crate::execution::{ExecCall, ExecEnd};
use crate::guest::{Guest, KillCause};
use crate::launching::LaunchOptions;
use crate::plan::{
    GuestEgress, GuestSpec, PlanError, PlannedComponents, SHARE, TemplateAccess, WP_CLI,
    build_plan, environment,
};
use crate::reduced::GuestTree;
use crate::scratch::ScratchStorage;
use crate::server::Database;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use wp_codebox_artifacts::remove_tree;
use wp_codebox_contracts::{
    ExecLimits, ExecRequest, ExecTerminal, ExecutionId, GuestPath, IsolationLevel, Limits,
};

/// Placeholder in guest/wp-config.php that is replaced by a random secret.
const SALT_MARK: &str = "@salt@";
/// Placeholder in guest/wp-config.php for the user name of the database.
const USER_MARK: &str = "@db_user@";
/// Placeholder in guest/wp-config.php for the address of the database.
const HOST_MARK: &str = "@db_host@";
/// User of MariaDB with which WordPress connects: the guest's user, whom the server recognises by
/// the credentials of the socket.
const DATABASE_USER: &str = "agent";
/// Address of MariaDB for WordPress.
const DATABASE_HOST: &str = "localhost:/run/mysqld/mysqld.sock";
/// Maximum run time of each program that the build runs in the guest.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of bytes from the end of a failed program's output that the error contains.
const TAIL: usize = 2000;

pub(super) fn build(
    request: &TemplateRequest<'_>,
    parts: &Parts,
    directory: &Path,
) -> Result<Record, TemplateError> {
    let io = |step| move |source: std::io::Error| TemplateError::Io { step, source };
    let _ = remove_tree(directory);
    files::make_directory(directory, 0o700).map_err(io("template directory"))?;
    let (key, version) = (parts.key.clone(), parts.wordpress_version.clone());
    let template = Template::below(directory, request, key, version)?;
    let (core, content) = (Path::new(&template.core), Path::new(&template.content));
    for path in [
        core,
        content,
        Path::new(&template.opcache),
        Path::new(&template.wp_cli),
    ] {
        files::make_directory(path, 0o755).map_err(io("template directory"))?;
    }
    copy_core(request, core)?;
    make_content(request, parts, content)?;
    install(request, &template, &directory.join("guest"))?;
    match request.database {
        Database::Sqlite => closed_database(content)?,
        // The program that runs the server fails unless the server has shut down in order.
        Database::MariaDb { .. } => {}
    }
    Ok(Record {
        format: FORMAT,
        key: parts.key.clone(),
        wordpress_version: parts.wordpress_version.clone(),
        php_version: request.php.version.clone(),
        theme: parts
            .theme
            .as_ref()
            .and_then(|theme| theme.file_name())
            .map(|name| name.to_string_lossy().into_owned()),
    })
}

fn copy_core(request: &TemplateRequest<'_>, core: &Path) -> Result<(), TemplateError> {
    for name in CORE_FILES {
        let from = request.wordpress.join(name);
        if from.is_file() {
            files::copy_file(&from, &core.join(name))?;
        }
    }
    for name in CORE_DIRECTORIES {
        files::copy_tree(&request.wordpress.join(name), &core.join(name))?;
    }
    files::make_directory(&core.join("wp-content"), 0o755).map_err(|source| TemplateError::Io {
        step: "wp-content",
        source,
    })?;
    let from = request.share_dir.join("guest/wp-config.php");
    let config = fs::read_to_string(&from)
        .map_err(|source| TemplateError::Unreadable { path: from, source })?;
    let (user, host) = match request.database {
        Database::Sqlite => ("", ""),
        Database::MariaDb { .. } => (DATABASE_USER, DATABASE_HOST),
    };
    let config = config.replace(USER_MARK, user).replace(HOST_MARK, host);
    let mut parts = config.split(SALT_MARK);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(&salt()?);
        text.push_str(part);
    }
    files::write(&core.join("wp-config.php"), text.as_bytes())
}

/// Returns 64 hexadecimal digits from the kernel's random generator, for one secret of
/// wp-config.php.
fn salt() -> Result<String, TemplateError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|source| TemplateError::Io {
        step: "random bytes",
        source: source.into(),
    })?;
    Ok(wp_codebox_contracts::Sha256Hex::from_bytes(&bytes)
        .as_str()
        .to_owned())
}

fn make_content(
    request: &TemplateRequest<'_>,
    parts: &Parts,
    content: &Path,
) -> Result<(), TemplateError> {
    const SILENCE: &[u8] = b"<?php\n// Silence is golden.\n";
    for name in ["plugins", "themes", "mu-plugins", "uploads"] {
        files::make_directory(&content.join(name), 0o755).map_err(|source| TemplateError::Io {
            step: "wp-content",
            source,
        })?;
    }
    for name in ["index.php", "plugins/index.php", "themes/index.php"] {
        files::write(&content.join(name), SILENCE)?;
    }
    if let Some((theme, name)) = parts.theme.as_ref().and_then(|t| Some((t, t.file_name()?))) {
        files::copy_tree(theme, &content.join("themes").join(name))?;
    }
    let plugin = "wp-codebox-guest.php";
    files::copy_file(
        &request.share_dir.join("mu-plugin").join(plugin),
        &content.join("mu-plugins").join(plugin),
    )?;
    match request.database {
        Database::Sqlite => {}
        // Only SQLite needs the drop-in: WordPress itself can connect to MariaDB.
        Database::MariaDb { .. } => return Ok(()),
    }
    let from = request
        .share_dir
        .join("sqlite-database-integration/db.copy");
    let drop_in = fs::read_to_string(&from)
        .map_err(|source| TemplateError::Unreadable { path: from, source })?;
    // Replace the drop-in's two placeholders: the directory of its code, and the plugin to which it
    // belongs. The directory is relative to the drop-in, because the guest's root path varies.
    let drop_in = drop_in
        .replace(
            "'{SQLITE_IMPLEMENTATION_FOLDER_PATH}'",
            &format!("rtrim( dirname( __DIR__, 2 ), '/' ) . '{SHARE}/sqlite-database-integration'"),
        )
        .replace("{SQLITE_PLUGIN}", "sqlite-database-integration/load.php");
    files::write(&content.join("db.php"), drop_in.as_bytes())
}

fn install(
    request: &TemplateRequest<'_>,
    template: &Template,
    place: &Path,
) -> Result<(), TemplateError> {
    let share_dir = request
        .share_dir
        .to_str()
        .ok_or_else(|| TemplateError::PathNotText {
            path: request.share_dir.to_owned(),
        })?;
    let plan = build_plan(&GuestSpec {
        host: request.host,
        php: request.php,
        share_dir,
        template,
        template_access: TemplateAccess::Build,
        mounts: &[],
        content: &[],
        components: &PlannedComponents::default(),
        task_json: "",
        staged: &[],
        programs: &[],
        limits: Limits::default(),
        egress: &GuestEgress::Denied,
    })?;
    let tree = match request.level {
        IsolationLevel::Full => None,
        IsolationLevel::Reduced | IsolationLevel::None => Some(GuestTree::lay_out(&plan, place)?),
    };
    let mut guest = Guest::launch(
        tree.as_ref().map_or(&plan, GuestTree::plan),
        &LaunchOptions {
            launcher: request.launcher,
            sandbox: request.sandbox,
            ready_timeout: Duration::from_secs(20),
            cgroup: &Cgroup::none("a template build runs no program of the caller"),
            identity: request.identity,
            scratch: &ScratchStorage::of_kernel(request.state_dir.join("templates")),
            used: &std::sync::Arc::default(),
        },
    )?;
    let php_layout = request.php;
    let php = php_layout.binary.as_str();
    let install = format!("{SHARE}/guest/install.php");
    let warm = format!("{SHARE}/guest/warm.php");
    let unpack = format!("{SHARE}/guest/unpack-wp-cli.php");
    let wp = format!("{SHARE}/bin/wp");
    // The warm-up runs twice: when PHP compiles a class in the first run, the opcode cache may not
    // have a directory for it yet, and the class is then not cached. The last step fills the cache
    // for WP-CLI.
    let mut steps: Vec<(&'static str, Vec<&str>)> = vec![
        ("install", vec![php, &install]),
        ("warm-up", vec![php, &warm]),
        ("warm-up", vec![php, &warm]),
        ("wp-cli", vec![&wp, "option", "get", "home"]),
    ];
    let (create, with) = (
        format!("{SHARE}/guest/create-database.sh"),
        format!("{SHARE}/guest/with-database.sh"),
    );
    if tree.is_none() {
        steps.insert(0, ("unpack", vec![php, &unpack, WP_CLI]));
    }
    if let Database::MariaDb { program } = request.database {
        for (_, argv) in &mut steps {
            argv.splice(0..0, ["/bin/sh", &with, program]);
        }
        steps.insert(0, ("database", vec!["/bin/sh", &create, program]));
    }
    for (step, argv) in steps {
        let mut request = call(step, &argv)?;
        if let Some(tree) = &tree {
            request = tree
                .root()
                .request(&request, php_layout)
                .map_err(PlanError::from)?;
        }
        run(&mut guest, step, &request)?;
    }
    guest.kill(KillCause::Finished);
    let Some(tree) = tree else { return Ok(()) };
    let io = |source| TemplateError::Io {
        step: "take over from the guest",
        source,
    };
    tree.replace_sources().map_err(io)?;
    remove_tree(place)
        .map(drop)
        .map_err(|e| io(std::io::Error::other(e)))
}

fn call(step: &'static str, argv: &[&str]) -> Result<ExecRequest, TemplateError> {
    let invalid = |output: &str| TemplateError::Install {
        step,
        output: output.to_owned(),
    };
    Ok(ExecRequest {
        id: ExecutionId::new(step).map_err(|_| invalid("id"))?,
        argv: argv.iter().map(|&arg| arg.to_owned()).collect(),
        env: environment(),
        cwd: GuestPath::new("/wordpress").map_err(|_| invalid("path"))?,
        limits: ExecLimits::default(),
        terminal: ExecTerminal::None,
    })
}

fn run(guest: &mut Guest, step: &'static str, request: &ExecRequest) -> Result<(), TemplateError> {
    let call = ExecCall {
        request,
        stdin: &[],
        deadline: Instant::now() + PROGRAM_TIMEOUT,
        output_limit: 1024 * 1024,
    };
    let mut said = Vec::new();
    let execution = guest.exec(&call, &mut |_, bytes| said.extend_from_slice(bytes))?;
    if execution.end == ExecEnd::Exited(0) {
        return Ok(());
    }
    let from = said.len().saturating_sub(TAIL);
    let tail = String::from_utf8_lossy(&said[from..]);
    // Join the lines of the output: an error message is one line.
    let tail = tail.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = match execution.end {
        ExecEnd::Exited(code) => format!("exit status {code}"),
        ExecEnd::Signaled(signal) => format!("ended by signal {signal}"),
        ExecEnd::TimedOut | ExecEnd::Stopped => "ended by its time limit".to_owned(),
        ExecEnd::MemoryLimit => "ended by its memory limit".to_owned(),
        ExecEnd::DiskLimit => "ended by its disk limit".to_owned(),
        ExecEnd::KernelObjects => "ended with too many file locks or connections".to_owned(),
        ExecEnd::Cancelled | ExecEnd::GuestDied => "ended with its guest".to_owned(),
    };
    Err(TemplateError::Install {
        step,
        output: format!("{end}: {tail}"),
    })
}

/// Fails when a journal file lies next to the template's SQLite database. SQLite would replay the
/// old journal into a database that a guest has changed since.
fn closed_database(content: &Path) -> Result<(), TemplateError> {
    let database = content.join("database");
    let unreadable = |source| TemplateError::Unreadable {
        path: database.clone(),
        source,
    };
    for entry in fs::read_dir(&database).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let name = name.to_string_lossy();
        if name.ends_with("-wal") || name.ends_with("-shm") || name.ends_with("-journal") {
            return Err(TemplateError::Database {
                file: name.into_owned(),
            });
        }
    }
    Ok(())
}
