//! One call of a tool: its context, its limits, and how it ended.

use crate::code::Code;
use crate::deadline::Deadline;
use crate::directory::Directory;
use crate::error::RunnerError;
use crate::host::{Memory, set_grants};
use crate::imports;
use crate::output::BoundedOutput;
use std::io::Read;
use wasmtime::{Engine, Store, Trap, component};
use wasmtime_wasi::p2::bindings::sync::Command;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::preview1::{self, WasiP1Ctx};
use wasmtime_wasi::{I32Exit, ResourceTable, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView, p2};
use wp_codebox_contracts::{MAX_WASI_EXIT_STATUS, WasiTool};

/// Largest input of a call in bytes.
const MAX_INPUT: u64 = 16 << 20;

/// A call of a tool.
pub struct Call<'a> {
    /// Definition of the tool.
    pub tool: &'a WasiTool,
    /// Directories that the tool gets.
    pub directories: &'a [Directory],
    /// Arguments of the module, without its name.
    pub args: &'a [String],
    /// Standard output of the module.
    pub stdout: BoundedOutput,
    /// Standard error of the module.
    pub stderr: BoundedOutput,
}

/// State of a store: the context of WASI and the memory that is left.
struct Guest<C> {
    wasi: C,
    memory: Memory,
}

/// Context of a component.
struct Preview2 {
    ctx: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Guest<Preview2> {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi.ctx,
            table: &mut self.wasi.table,
        }
    }
}

impl Call<'_> {
    /// Runs the tool and returns its exit status.
    pub fn run(
        &self,
        engine: &Engine,
        code: &Code,
        input: impl Read,
        deadline: &Deadline,
    ) -> Result<u8, RunnerError> {
        let mut builder = self.context(input)?;
        let memory = Memory::new(self.tool.limits.memory_bytes);
        match code {
            Code::Module(module) => {
                let wasi = builder.build_p1();
                let mut store = self.store(engine, Guest { wasi, memory })?;
                let mut linker = wasmtime::Linker::new(engine);
                preview1::add_to_linker_sync(&mut linker, |guest: &mut Guest<WasiP1Ctx>| {
                    &mut guest.wasi
                })
                .and_then(|()| {
                    // Replaces the runtime's `proc_exit`, which reports statuses from 126 on as an
                    // untyped error that looks like any other error.
                    linker
                        .allow_shadowing(true)
                        .func_wrap(imports::PREVIEW_1, "proc_exit", exit)
                        .map(drop)
                })
                .map_err(RunnerError::while_doing("linking the module"))?;
                let ended = linker
                    .instantiate(&mut store, module)
                    .and_then(|instance| instance.get_typed_func::<(), ()>(&mut store, "_start"))
                    .and_then(|start| start.call(&mut store, ()));
                self.status(ended.map(|()| 0), &store.data().memory, deadline)
            }
            Code::Component(component) => {
                let wasi = Preview2 {
                    ctx: builder.build(),
                    table: ResourceTable::new(),
                };
                let mut store = self.store(engine, Guest { wasi, memory })?;
                let mut linker = component::Linker::new(engine);
                p2::add_to_linker_sync::<Guest<Preview2>>(&mut linker)
                    .map_err(RunnerError::while_doing("linking the component"))?;
                let ended = Command::instantiate(&mut store, component, &linker)
                    .and_then(|command| command.wasi_cli_run().call_run(&mut store));
                let status = ended.map(|result| i32::from(result.is_err()));
                self.status(status, &store.data().memory, deadline)
            }
        }
    }

    /// Returns what the module sees: input, outputs, arguments and directories. Nothing of the
    /// runner's own environment, and no sockets.
    fn context(&self, input: impl Read) -> Result<WasiCtxBuilder, RunnerError> {
        let mut bytes = Vec::new();
        input
            .take(MAX_INPUT + 1)
            .read_to_end(&mut bytes)
            .map_err(RunnerError::while_doing("reading the tool's input"))?;
        if bytes.len() as u64 > MAX_INPUT {
            return Err(RunnerError::Input { limit: MAX_INPUT });
        }
        let mut builder = WasiCtxBuilder::new();
        builder
            .stdin(MemoryInputPipe::new(bytes))
            .stdout(self.stdout.clone())
            .stderr(self.stderr.clone())
            .arg(self.tool.id.as_str())
            .args(self.args)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            // One thread runs one module: a blocking read delays no other work.
            .allow_blocking_current_thread(true);
        set_grants(&mut builder, self.tool);
        for directory in self.directories {
            directory.open(&mut builder)?;
        }
        Ok(builder)
    }

    fn store<C>(&self, engine: &Engine, guest: Guest<C>) -> Result<Store<Guest<C>>, RunnerError> {
        let mut store = Store::new(engine, guest);
        store.limiter(|guest| &mut guest.memory);
        store
            .set_fuel(self.tool.limits.fuel)
            .map_err(RunnerError::while_doing("setting the fuel"))?;
        // The deadline increments the epoch one time.
        store.set_epoch_deadline(1);
        Ok(store)
    }

    /// Returns the exit status, or why there is none. The runner's own observations come first:
    /// the runtime reports a limit as an error of the function that reached it.
    fn status(
        &self,
        ended: wasmtime::Result<i32>,
        memory: &Memory,
        deadline: &Deadline,
    ) -> Result<u8, RunnerError> {
        let limits = &self.tool.limits;
        let error = match ended {
            Ok(status) => return exit_status(status),
            Err(error) => error,
        };
        if memory.exceeded() {
            return Err(RunnerError::Memory {
                limit: limits.memory_bytes,
            });
        }
        if self.stdout.exceeded() || self.stderr.exceeded() {
            return Err(RunnerError::Output {
                limit: limits.output_bytes,
            });
        }
        if let Some(I32Exit(status)) = error.downcast_ref::<I32Exit>() {
            return exit_status(*status);
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => Err(RunnerError::Fuel { fuel: limits.fuel }),
            Some(Trap::Interrupt) => Err(deadline.error()),
            Some(trap) => Err(RunnerError::Trap {
                reason: trap.to_string(),
            }),
            None => Err(RunnerError::Trap {
                reason: error.root_cause().to_string(),
            }),
        }
    }
}

/// `proc_exit` of preview 1.
fn exit(status: i32) -> wasmtime::Result<()> {
    Err(I32Exit(status).into())
}

/// Statuses above 123 belong to the runner, so that a module cannot fake an error of the runner.
fn exit_status(status: i32) -> Result<u8, RunnerError> {
    u8::try_from(status)
        .ok()
        .filter(|_| status <= MAX_WASI_EXIT_STATUS)
        .ok_or(RunnerError::Exit { status })
}
