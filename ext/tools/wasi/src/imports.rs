//! What a module may import. Everything that is not listed is refused before any code runs.

use crate::error::RunnerError;
use wasmtime::component::Component;
use wasmtime::{Engine, ExternType, Module};

/// Module name of WASI preview 1.
pub const PREVIEW_1: &str = "wasi_snapshot_preview1";

/// Functions of preview 1 that tools get. The sockets (`sock_*`) and `proc_raise` are missing.
/// Functions for files are granted to every tool, because the standard libraries of most languages
/// import them; without a directory of the call they find no file.
const FUNCTIONS: &[&str] = &[
    "args_get",
    "args_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_advise",
    "fd_allocate",
    "fd_close",
    "fd_datasync",
    "fd_fdstat_get",
    "fd_fdstat_set_flags",
    "fd_fdstat_set_rights",
    "fd_filestat_get",
    "fd_filestat_set_size",
    "fd_filestat_set_times",
    "fd_pread",
    "fd_prestat_dir_name",
    "fd_prestat_get",
    "fd_pwrite",
    "fd_read",
    "fd_readdir",
    "fd_renumber",
    "fd_seek",
    "fd_sync",
    "fd_tell",
    "fd_write",
    "path_create_directory",
    "path_filestat_get",
    "path_filestat_set_times",
    "path_link",
    "path_open",
    "path_readlink",
    "path_remove_directory",
    "path_rename",
    "path_symlink",
    "path_unlink_file",
    "poll_oneoff",
    "proc_exit",
    "random_get",
    "sched_yield",
];

/// Packages of WASI 0.2 that components get; `wasi:sockets` and `wasi:http` are missing.
const PACKAGES: &[&str] = &[
    "wasi:cli/",
    "wasi:clocks/",
    "wasi:filesystem/",
    "wasi:io/",
    "wasi:random/",
];

/// Checks that a preview 1 module imports only [`FUNCTIONS`] and is a command.
pub fn check_module(module: &Module) -> Result<(), RunnerError> {
    for import in module.imports() {
        let granted = import.module() == PREVIEW_1
            && FUNCTIONS.contains(&import.name())
            && matches!(import.ty(), ExternType::Func(_));
        if !granted {
            return Err(RunnerError::Import {
                import: shown(&format!("{}.{}", import.module(), import.name())),
            });
        }
    }
    let start = module.get_export("_start");
    let is_command = start
        .as_ref()
        .and_then(ExternType::func)
        .is_some_and(|ty| ty.params().len() == 0 && ty.results().len() == 0);
    if is_command {
        Ok(())
    } else {
        Err(RunnerError::Module {
            reason: "it exports no function _start without parameters and results".to_owned(),
        })
    }
}

/// Checks that a component imports only [`PACKAGES`] and is a command.
pub fn check_component(engine: &Engine, component: &Component) -> Result<(), RunnerError> {
    let ty = component.component_type();
    for (name, _) in ty.imports(engine) {
        if !PACKAGES.iter().any(|package| name.starts_with(package)) {
            return Err(RunnerError::Import {
                import: shown(name),
            });
        }
    }
    if ty
        .exports(engine)
        .any(|(name, _)| name.starts_with("wasi:cli/run@0.2."))
    {
        Ok(())
    } else {
        Err(RunnerError::Module {
            reason: "it does not export wasi:cli/run of WASI 0.2".to_owned(),
        })
    }
}

/// Returns a name of the module, which its author chose, cut and without control characters.
fn shown(name: &str) -> String {
    name.chars()
        .take(100)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
