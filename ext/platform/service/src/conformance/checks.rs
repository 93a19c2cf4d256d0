//! The checks. Each one provisions its own sandbox and tears it down, also when it fails.

use super::subject::Subject;
use crate::actor::{Actor, ActorClass};
use crate::extension::{
    CleanupReport, ExecEnd, ExecOutput, ExecRequest, SandboxId, SandboxState, SandboxView,
};
use sha2::{Digest, Sha256};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, OutputStream, hex};

type Outcome = Result<(), String>;
type Ids<'a> = &'a (dyn Fn() -> SandboxId + Sync);
type Check = fn(&Subject, Ids<'_>) -> Outcome;

/// Every check with its name.
pub(super) const ALL: &[(&str, Check)] = &[
    ("unknown_sandbox_is_not_found_by_every_method", unknown),
    (
        "provisioned_sandbox_becomes_ready_and_shows_its_lifetime",
        ready,
    ),
    ("provision_twice_makes_one_sandbox", twice),
    ("program_gets_arguments_input_and_environment", exec),
    ("output_of_both_streams_and_exit_code_arrive_whole", output),
    ("program_of_a_client_that_is_gone_is_killed", gone),
    ("file_is_read_as_written_and_guarded_by_its_digest", files),
    (
        "extended_lifetime_is_shown_and_bounded_by_the_profile",
        extend,
    ),
    ("snapshot_is_restored", snapshot),
    ("teardown_twice_reports_a_complete_cleanup", teardown),
    ("ended_sandbox_takes_no_requests", ended),
    (
        "sandboxes_and_programs_at_the_same_time_do_not_mix",
        concurrent,
    ),
    ("estimate_has_its_schema", estimate),
];

fn actor() -> Actor {
    Actor {
        class: ActorClass::Automation,
        name: "conformance".to_owned(),
    }
}

fn said(what: &str, error: &ErrorBody) -> String {
    format!("{what}: {error}")
}

fn must(holds: bool, message: impl Into<String>) -> Outcome {
    if holds { Ok(()) } else { Err(message.into()) }
}

/// Runs a check with a ready sandbox, and tears it down afterwards.
fn with_sandbox(
    subject: &Subject,
    ids: Ids<'_>,
    check: impl FnOnce(&SandboxId) -> Outcome,
) -> Outcome {
    let id = ids();
    let extension = &subject.extension;
    extension
        .provision(&subject.request(&id, &actor()))
        .map_err(|e| said("provision", &e))?;
    let result = extension
        .wait_ready(&id)
        .map_err(|e| said("wait_ready", &e))
        .and_then(|_| check(&id));
    let ended = extension.teardown(&id, &actor(), "the check is over");
    result?;
    ended.map(|_| ()).map_err(|e| said("teardown", &e))
}

/// Collects the output of a program.
#[derive(Debug, Default)]
struct Collected {
    started: bool,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl ExecOutput for Collected {
    fn started(&mut self, _execution_id: &str) -> io::Result<()> {
        self.started = true;
        Ok(())
    }

    fn write(&mut self, stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
        match stream {
            OutputStream::Stdout => self.stdout.extend_from_slice(bytes),
            OutputStream::Stderr => self.stderr.extend_from_slice(bytes),
        }
        Ok(())
    }
}

fn program(argv: &[&str]) -> ExecRequest {
    ExecRequest {
        argv: argv.iter().map(|&text| text.to_owned()).collect(),
        ..ExecRequest::default()
    }
}

fn run(
    subject: &Subject,
    id: &SandboxId,
    request: &ExecRequest,
) -> Result<(ExecEnd, Collected), String> {
    let mut output = Collected::default();
    let end = subject
        .extension
        .exec(id, request, &actor(), &mut output)
        .map_err(|e| said("exec", &e))?;
    must(output.started, "exec did not say that the program started")?;
    Ok((end, output))
}

fn view(subject: &Subject, id: &SandboxId) -> Result<SandboxView, String> {
    subject.extension.view(id).map_err(|e| said("view", &e))
}

fn unknown(subject: &Subject, ids: Ids<'_>) -> Outcome {
    let (id, by) = (ids(), actor());
    let extension = &subject.extension;
    let mut output = Collected::default();
    let request = program(&["true"]);
    let results = [
        ("wait_ready", extension.wait_ready(&id).map(|_| ())),
        ("view", extension.view(&id).map(|_| ())),
        (
            "exec",
            extension.exec(&id, &request, &by, &mut output).map(|_| ()),
        ),
        ("files", extension.files(&id).map(|_| ())),
        ("read_file", extension.read_file(&id, "/x").map(|_| ())),
        (
            "write_file",
            extension
                .write_file(&id, "/x", Some(b"x"), None, &by)
                .map(|_| ()),
        ),
        ("extend_ttl", extension.extend_ttl(&id, 1000, &by)),
        ("snapshot", extension.snapshot(&id, None, &by).map(|_| ())),
        ("restore", extension.restore(&id, "x", &by)),
        ("teardown", extension.teardown(&id, &by, "x").map(|_| ())),
        ("events", extension.events(&id, 0).map(|_| ())),
    ];
    for (method, result) in results {
        let code = result.err().map(|error| error.code);
        must(
            code == Some(ErrorCode::SandboxNotFound),
            format!(
                "{method} of an unknown sandbox answered {code:?} instead of wp_codebox_sandbox_not_found"
            ),
        )?;
    }
    Ok(())
}

fn ready(subject: &Subject, ids: Ids<'_>) -> Outcome {
    with_sandbox(subject, ids, |id| {
        let view = view(subject, id)?;
        must(
            view.state.is_usable(),
            format!("after wait_ready the state is {:?}", view.state),
        )?;
        must(
            view.expires_at.is_some(),
            "a ready sandbox has no expires_at",
        )?;
        must(view.ended.is_none(), "a ready sandbox has a member ended")
    })
}

fn twice(subject: &Subject, ids: Ids<'_>) -> Outcome {
    with_sandbox(subject, ids, |id| {
        let file = format!("{}/conformance-twice", subject.workspace);
        let written = subject
            .extension
            .write_file(id, &file, Some(b"1"), None, &actor());
        written.map_err(|e| said("write_file", &e))?;
        let again = subject.extension.provision(&subject.request(id, &actor()));
        again.map_err(|e| said("the second provision", &e))?;
        let read = subject.extension.read_file(id, &file);
        let read = read.map_err(|e| said("read_file after the second provision", &e))?;
        must(read == b"1", "the second provision replaced the sandbox")
    })
}

fn exec(subject: &Subject, ids: Ids<'_>) -> Outcome {
    with_sandbox(subject, ids, |id| {
        let mut request = program(&["/bin/sh", "-c", "cat; printf %s \"$CHECK-$1\"", "sh", "a b"]);
        request.env.insert("CHECK".to_owned(), "7".to_owned());
        request.stdin = Some("in\n".to_owned());
        let (end, output) = run(subject, id, &request)?;
        must(end.code == Some(0), format!("the program ended as {end:?}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        must(text == "in\n7-a b", format!("the program printed {text:?}"))
    })
}

fn output(subject: &Subject, ids: Ids<'_>) -> Outcome {
    with_sandbox(subject, ids, |id| {
        let script = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done; printf '\\377\\376' >&2; exit 7";
        let (end, output) = run(subject, id, &program(&["/bin/sh", "-c", script]))?;
        must(
            end.code == Some(7),
            format!("exit code 7 arrived as {end:?}"),
        )?;
        must(
            output.stdout.len() == 3000 * 41,
            format!("{} bytes of 123000 arrived", output.stdout.len()),
        )?;
        must(
            output.stderr == [0xff, 0xfe],
            "bytes that are not UTF-8 arrived changed",
        )
    })
}

/// A client that goes away as soon as the program started.
struct Gone(AtomicBool);

impl ExecOutput for Gone {
    fn started(&mut self, _execution_id: &str) -> io::Result<()> {
        self.0.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn write(&mut self, _stream: OutputStream, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn gone(subject: &Subject, ids: Ids<'_>) -> Outcome {
    with_sandbox(subject, ids, |id| {
        let began = Instant::now();
        let request = program(&["/bin/sh", "-c", "exec sleep 3600"]);
        let mut client = Gone(AtomicBool::new(false));
        let _ = subject.extension.exec(id, &request, &actor(), &mut client);
        must(
            began.elapsed() < subject.patience,
            "the program went on without its client",
        )?;
        run(subject, id, &program(&["/bin/sh", "-c", "exit 0"])).map(|_| ())
    })
}

fn files(subject: &Subject, ids: Ids<'_>) -> Outcome {
    with_sandbox(subject, ids, |id| {
        let (extension, by) = (&subject.extension, actor());
        let file = format!("{}/conformance file.bin", subject.workspace);
        let read = || extension.read_file(id, &file);
        let code = read().err().map(|error| error.code);
        must(
            code == Some(ErrorCode::ServiceNotFound),
            format!(
                "a file that does not exist is read as {code:?} instead of wp_codebox_service_not_found"
            ),
        )?;
        let first: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let write = |content: Option<&[u8]>, base: Option<&str>| {
            extension.write_file(id, &file, content, base, &by)
        };
        write(Some(&first), Some("")).map_err(|e| said("write of a new file", &e))?;
        must(
            read().is_ok_and(|bytes| bytes == first),
            "the file is not read as it was written",
        )?;
        must(
            write(Some(b"2"), Some("")).is_err(),
            "a file that exists was replaced by a new one",
        )?;
        let other = hex(&Sha256::digest(b"other"));
        must(
            write(Some(b"2"), Some(&other)).is_err(),
            "a file with another digest was replaced",
        )?;
        let digest = hex(&Sha256::digest(&first));
        write(Some(b"2"), Some(&digest)).map_err(|e| said("write with the right digest", &e))?;
        must(
            read().is_ok_and(|bytes| bytes == b"2"),
            "the second content is not there",
        )?;
        extension.files(id).map_err(|e| said("files", &e))?;
        write(None, None).map_err(|e| said("deletion", &e))?;
        must(read().is_err(), "the deleted file is still there")
    })
}

fn extend(subject: &Subject, ids: Ids<'_>) -> Outcome {
    with_sandbox(subject, ids, |id| {
        let before = view(subject, id)?.expires_at;
        let (by, most) = (actor(), subject.profile.ttl_max_ms);
        let longer = subject.profile.ttl_default_ms / 2 + most / 4;
        subject
            .extension
            .extend_ttl(id, longer, &by)
            .map_err(|e| said("extend_ttl", &e))?;
        let after = view(subject, id)?.expires_at;
        must(after != before, format!("expires_at stayed {before:?}"))?;
        let beyond = subject
            .extension
            .extend_ttl(id, most.saturating_mul(4), &by);
        must(
            beyond.is_err(),
            "a lifetime beyond the profile's bound was accepted",
        )
    })
}

fn snapshot(subject: &Subject, ids: Ids<'_>) -> Outcome {
    let capabilities = subject.extension.capabilities();
    with_sandbox(subject, ids, |id| {
        let (extension, by) = (&subject.extension, actor());
        if !capabilities.snapshot {
            let refused = extension.snapshot(id, Some("x"), &by).is_err();
            return must(refused, "a snapshot without the capability was accepted");
        }
        let file = format!("{}/conformance-state", subject.workspace);
        let put = |content: &[u8]| {
            let written = extension.write_file(id, &file, Some(content), None, &by);
            written.map(|_| ()).map_err(|e| said("write_file", &e))
        };
        put(b"before")?;
        let taken = extension.snapshot(id, Some("conformance"), &by);
        let taken = taken.map_err(|e| said("snapshot", &e))?;
        let snapshot = taken["id"].as_str().unwrap_or_default().to_owned();
        let rows = extension.snapshots().map_err(|e| said("snapshots", &e))?;
        let row = rows.iter().find(|row| row["id"] == taken["id"]);
        must(
            row.is_some_and(|row| row["run_id"] == id.as_str()),
            "the list of snapshots has no row with this id and run_id",
        )?;
        put(b"after")?;
        if capabilities.restore {
            let restored = extension.restore(id, &snapshot, &by);
            restored.map_err(|e| said("restore", &e))?;
            let read = extension
                .read_file(id, &file)
                .map_err(|e| said("read_file", &e))?;
            must(
                read == b"before",
                "the restored sandbox has the later state",
            )?;
        }
        let unknown = extension.restore(id, "snap_ffffffffffffffffffffffffffffffff", &by);
        must(unknown.is_err(), "an unknown snapshot was restored")?;
        // While a sandbox runs, the snapshot to which it was restored may be in use and not
        // removable.
        let ended = extension.teardown(id, &by, "the snapshot is removed");
        ended.map_err(|e| said("teardown", &e))?;
        for _ in 0..2 {
            let removed = extension.remove_snapshot(&snapshot, &by);
            removed.map_err(|e| said("remove_snapshot", &e))?;
        }
        Ok(())
    })
}

fn complete(report: &CleanupReport) -> Outcome {
    must(
        report.complete,
        format!("the report is not complete: {report:?}"),
    )?;
    must(
        report.leftovers.is_empty(),
        format!("something remains: {report:?}"),
    )
}

fn teardown(subject: &Subject, ids: Ids<'_>) -> Outcome {
    with_sandbox(subject, ids, |id| {
        let end = || subject.extension.teardown(id, &actor(), "it is over");
        let first = end().map_err(|e| said("teardown", &e))?;
        complete(&first)?;
        must(
            !first.already_ended,
            "the first teardown says that it had ended already",
        )?;
        let seen = view(subject, id)?;
        must(
            seen.state == SandboxState::Destroyed && seen.ended.is_some(),
            format!("after the teardown the view is {seen:?}"),
        )?;
        let second = end().map_err(|e| said("the second teardown", &e))?;
        complete(&second)?;
        must(
            second.already_ended,
            "the second teardown does not say that it had ended",
        )
    })
}

fn ended(subject: &Subject, ids: Ids<'_>) -> Outcome {
    with_sandbox(subject, ids, |id| {
        let (extension, by) = (&subject.extension, actor());
        let ended = extension.teardown(id, &by, "it is over");
        ended.map_err(|e| said("teardown", &e))?;
        let mut output = Collected::default();
        let request = program(&["/bin/sh", "-c", "exit 0"]);
        let results = [
            (
                "exec",
                extension.exec(id, &request, &by, &mut output).map(|_| ()),
            ),
            ("read_file", extension.read_file(id, "/x").map(|_| ())),
            ("extend_ttl", extension.extend_ttl(id, 1000, &by)),
        ];
        for (method, result) in results {
            let code = result.err().map(|error| error.code);
            must(
                code == Some(ErrorCode::SandboxNotHeld),
                format!(
                    "{method} of an ended sandbox answered {code:?} instead of wp_codebox_sandbox_not_held"
                ),
            )?;
        }
        extension
            .events(id, 0)
            .map(|_| ())
            .map_err(|e| said("events of an ended sandbox", &e))
    })
}

fn concurrent(subject: &Subject, ids: Ids<'_>) -> Outcome {
    let one = |index: usize| {
        with_sandbox(subject, ids, |id| {
            let file = format!("{}/conformance-mine", subject.workspace);
            let mine = format!("sandbox {index}");
            let written =
                subject
                    .extension
                    .write_file(id, &file, Some(mine.as_bytes()), None, &actor());
            written.map_err(|e| said("write_file", &e))?;
            std::thread::scope(|scope| {
                let reads: Vec<_> = (0..3)
                    .map(|_| scope.spawn(|| run(subject, id, &program(&["cat", &file]))))
                    .collect();
                for read in reads {
                    let read = read.join().map_err(|_| "a thread panicked".to_owned())?;
                    let text = String::from_utf8_lossy(&read?.1.stdout).into_owned();
                    must(text == mine, format!("sandbox {index} reads {text:?}"))?;
                }
                Ok(())
            })
        })
    };
    std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..3)
            .map(|index| scope.spawn(move || one(index)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err("a thread panicked".to_owned()))
        })
    })
}

fn estimate(subject: &Subject, _: Ids<'_>) -> Outcome {
    let hour = Duration::from_secs(3600).as_millis();
    let ms = u64::try_from(hour)
        .unwrap_or(u64::MAX)
        .min(subject.profile.ttl_max_ms);
    let estimate = subject
        .extension
        .estimate(&subject.profile, ms)
        .map_err(|e| said("estimate", &e))?;
    must(
        estimate["schema"] == wp_codebox_contracts::schema_id::SANDBOX_ESTIMATE,
        format!("the estimate has the schema {}", estimate["schema"]),
    )
}
