//! Programs in a guest: start, output streams, exit.

use crate::fixture::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wp_codebox_backend_native::{ExecCall, ExecEnd, ExecError, KillCause};
use wp_codebox_contracts::{CodedError, ErrorCode, GuestPath, IsolationLevel};

#[test]
fn stdin_reaches_the_program_and_its_exit_code_and_output_reach_the_caller() {
    let mut guest = guest();
    assert_eq!(guest.report().level, IsolationLevel::Full);
    assert_eq!(run(&mut guest, &["true"]).code(), 0);
    assert_eq!(sh(&mut guest, "exit 7").code(), 7);
    let result = sh(&mut guest, "echo out; echo err >&2");
    assert_eq!(
        (result.out.as_str(), result.err.as_str()),
        ("out\n", "err\n")
    );
    let big = vec![b'x'; 3_000_000];
    let result = run_request(&mut guest, &request(&["wc", "-c"]), &big);
    assert_eq!(result.ok().trim(), "3000000");
    let result = sh(&mut guest, "kill -SEGV $$");
    assert_eq!(result.execution.end, ExecEnd::Signaled(libc::SIGSEGV));
    assert_eq!(
        run(&mut guest, &["cat"]).ok(),
        "",
        "no input is end of file"
    );
}

#[test]
fn program_gets_the_given_environment_and_directory_and_only_standard_descriptors() {
    let mut guest = guest();
    let mut request = request(&["env"]);
    request.env = BTreeMap::from([
        ("ONLY".to_owned(), "this".to_owned()),
        ("PATH".to_owned(), "/usr/bin".to_owned()),
    ]);
    assert_eq!(
        run_request(&mut guest, &request, &[]).ok(),
        "ONLY=this\nPATH=/usr/bin\n"
    );
    request.id = self::request(&[]).id;
    request.argv = vec!["pwd".to_owned()];
    request.cwd = GuestPath::new("/wordpress/wp-includes").unwrap();
    assert_eq!(
        run_request(&mut guest, &request, &[]).ok(),
        "/wordpress/wp-includes\n"
    );
    // `ls` itself holds one more descriptor for the directory that it reads.
    assert_eq!(
        run(&mut guest, &["ls", "/proc/self/fd"]).ok(),
        "0\n1\n2\n3\n"
    );
    assert_eq!(sh(&mut guest, "umask; ulimit -c").ok(), "0022\n0\n");
}

#[test]
fn error_of_a_program_that_cannot_start_names_the_failed_step() {
    let mut guest = guest();
    let step = |guest: &mut _, argv: &[&str], cwd: &str| {
        let mut request = request(argv);
        request.cwd = GuestPath::new(cwd).unwrap();
        let call = ExecCall {
            request: &request,
            stdin: &[],
            deadline: Instant::now() + GENEROUS,
            output_limit: 1000,
        };
        let guest: &mut wp_codebox_backend_native::Guest = guest;
        match guest.exec(&call, &mut |_, _| {}) {
            Err(ExecError::NotStarted { step, errno, .. }) => (step, errno),
            other => panic!("{other:?}"),
        }
    };
    let lookup = |errno| ("lookup".to_owned(), errno);
    assert_eq!(
        step(&mut guest, &["no-such-program"], "/tmp"),
        lookup(libc::ENOENT)
    );
    assert_eq!(
        step(&mut guest, &["/usr/bin/no-such"], "/tmp"),
        lookup(libc::ENOENT)
    );
    assert_eq!(
        step(&mut guest, &["/etc/passwd"], "/tmp"),
        lookup(libc::EACCES)
    );
    assert_eq!(step(&mut guest, &["/usr"], "/tmp"), lookup(libc::EACCES));
    assert_eq!(
        step(&mut guest, &["true"], "/nowhere"),
        ("chdir".to_owned(), libc::ENOENT)
    );
    assert_eq!(
        step(&mut guest, &[], "/tmp"),
        ("input".to_owned(), libc::EINVAL)
    );
    assert_eq!(
        step(&mut guest, &["true", "a\0b"], "/tmp"),
        ("input".to_owned(), libc::EINVAL)
    );
    assert_eq!(
        sh(
            &mut guest,
            "printf '#!/bin/sh\\necho script\\n' > s; chmod +x s; ./s"
        )
        .ok(),
        "script\n"
    );
    assert_eq!(
        run(&mut guest, &["./s"]).ok(),
        "script\n",
        "relative to the directory"
    );
    let error = ExecError::NotStarted {
        program: "x".to_owned(),
        step: "lookup".to_owned(),
        errno: 2,
    };
    assert_eq!(error.code(), ErrorCode::AgentProgramMissing);
}

#[test]
fn large_arguments_are_passed_and_too_large_ones_are_refused() {
    let mut guest = guest();
    let large = "y".repeat(120_000);
    assert_eq!(
        run(&mut guest, &["printf", "%s", &large]).ok().len(),
        120_000
    );
    let request = request(&["printf", &"z".repeat(300_000)]);
    let call = ExecCall {
        request: &request,
        stdin: &[],
        deadline: Instant::now() + GENEROUS,
        output_limit: 10,
    };
    let error = guest.exec(&call, &mut |_, _| {}).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InputInvalid);
    assert_eq!(
        run(&mut guest, &["true"]).code(),
        0,
        "the guest is still there"
    );
}

#[test]
fn output_above_the_limit_is_dropped_and_reported_as_truncated() {
    let mut guest = guest();
    for (limit, truncated) in [(1000, true), (1_000_000, false)] {
        let request = request(&["head", "-c", "1000000", "/dev/zero"]);
        let call = ExecCall {
            request: &request,
            stdin: &[],
            deadline: Instant::now() + Duration::from_secs(20),
            output_limit: limit,
        };
        let mut kept = 0;
        let execution = guest
            .exec(&call, &mut |_, bytes| kept += bytes.len() as u64)
            .unwrap();
        assert_eq!((kept, execution.output_bytes), (limit, 1_000_000));
        assert_eq!(execution.output_truncated, truncated);
        assert_eq!(execution.end, ExecEnd::Exited(0));
    }
}

#[test]
fn program_past_its_deadline_ends_as_timed_out_and_its_guest_is_killed() {
    let mut guest = guest();
    let request = request(&[
        "sh",
        "-c",
        "trap '' TERM INT; setsid sleep infinity & sleep infinity",
    ]);
    let call = ExecCall {
        request: &request,
        stdin: &[],
        deadline: Instant::now() + Duration::from_millis(400),
        output_limit: 10,
    };
    let execution = guest.exec(&call, &mut |_, _| {}).unwrap();
    assert_eq!(execution.end, ExecEnd::TimedOut);
    assert_eq!(run(&mut guest, &["true"]).execution.end, ExecEnd::TimedOut);
    assert_eq!(guest.kill(KillCause::Finished).cause, KillCause::Deadline);
}

#[test]
fn execution_ends_as_cancelled_when_another_thread_kills_the_guest() {
    let mut guest = guest();
    let killer = guest.killer();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        killer.kill(KillCause::Cancelled);
    });
    let result = run(&mut guest, &["sleep", "50"]);
    thread.join().unwrap();
    assert_eq!(result.execution.end, ExecEnd::Cancelled);
}

#[test]
fn background_process_does_not_delay_the_execution_and_keeps_running() {
    let mut guest = guest();
    // The background process runs until the file /tmp/stop exists. That file is created after the
    // first execution has returned, so an execution that waited for the process would never return.
    let result = sh(
        &mut guest,
        "(while [ ! -e /tmp/stop ]; do sleep 0.05; done; echo seen > /tmp/done) & echo started",
    );
    assert_eq!(result.ok(), "started\n");
    let result = sh(
        &mut guest,
        "touch /tmp/stop; for i in $(seq 200); do [ -s /tmp/done ] && break; sleep 0.1; done; cat /tmp/done",
    );
    assert_eq!(result.ok(), "seen\n");
}

#[test]
fn bash_php_git_curl_python_and_node_run_in_the_guest() {
    let mut guest = guest();
    assert_eq!(
        run(&mut guest, &["bash", "-c", "a=(1 2); cat <(echo ${#a[@]})"]).ok(),
        "2\n"
    );
    let php = "$p=proc_open(['sh','-c','echo hi'],[1=>['pipe','w']],$x);echo stream_get_contents($x[1]),PHP_EOL,proc_close($p);";
    assert_eq!(run(&mut guest, &["php", "-r", php]).ok(), "hi\n\n0");
    let git = "mkdir r && cd r && git init -q . && git config user.email a@b && git config user.name n && echo 1 > f && git add f && git commit -qm m && echo 2 > f && git diff --stat | tail -1";
    assert_eq!(
        sh(&mut guest, git).ok().trim(),
        "1 file changed, 1 insertion(+), 1 deletion(-)"
    );
    let serve = "echo '<?php echo 6*7;' > /tmp/i.php; php -S 127.0.0.1:8099 -t /tmp >/dev/null 2>&1 & for i in $(seq 200); do curl -sf http://127.0.0.1:8099/i.php && break; sleep 0.1; done; kill $!";
    assert_eq!(sh(&mut guest, serve).ok(), "42");
    let python = "import subprocess,threading,tempfile,socket,multiprocessing as m\nt=threading.Thread(target=lambda:None);t.start();t.join()\nq=m.Queue();q.put(1)\nprint(subprocess.check_output(['echo','ok']).decode().strip(), q.get())";
    assert_eq!(
        run(&mut guest, &["/usr/bin/python3", "-c", python]).ok(),
        "ok 1\n"
    );
    if std::path::Path::new("/usr/bin/node").exists() {
        let node = "const {execFileSync}=require('child_process');const fs=require('fs');fs.promises.writeFile('/tmp/n','5').then(()=>fs.promises.readFile('/tmp/n','utf8')).then(t=>console.log(t+execFileSync('echo',['x'])))";
        assert_eq!(run(&mut guest, &["node", "-e", node]).ok(), "5x\n\n");
    }
}

/// seccomp refuses extended attributes and `splice`, because the kernel memory behind them counts
/// against no limit. Programs that copy files then do without.
#[test]
fn files_are_copied_without_extended_attributes_and_splice() {
    let mut guest = guest();
    let copy = r#"
set -e
mkdir /tmp/from && cd /tmp/from && echo text > file && chmod 640 file && ln -s file link && mkfifo fifo
touch -d '2020-02-02 02:02:02' file
cp -a /tmp/from /tmp/by-cp
cp --preserve=mode,timestamps file /tmp/by-cp/copy
install -m 600 file /tmp/by-cp/installed
mkdir /tmp/by-tar && tar --xattrs --acls -cf - . | tar --xattrs --acls -xf - -C /tmp/by-tar
! command -v rsync > /dev/null || rsync -aq file link /tmp/by-cp/synced/
cat file | cat > /tmp/by-cp/piped
mv /tmp/by-tar/file /dev/shm/moved
stat -c '%a %y' /tmp/by-cp/file /dev/shm/moved | sort -u
! setfattr --help > /dev/null 2>&1 || ! setfattr -n user.note -v x file 2> /dev/null
/usr/bin/python3 -c "
import os, shutil, sys
shutil.copy2('file', '/tmp/by-cp/python')
try:
    os.setxattr('file', 'user.note', b'x')
    sys.exit('control: an attribute was set')
except OSError as error:
    assert error.errno == 95, error
reading, writing = os.pipe()
try:
    os.splice(os.open('file', os.O_RDONLY), writing, 1)
    sys.exit('control: data was spliced')
except OSError as error:
    assert error.errno == 22, error
assert os.sendfile(writing, os.open('file', os.O_RDONLY), 0, 5) == 5
"
"#;
    assert_eq!(
        sh(&mut guest, copy).ok(),
        "640 2020-02-02 02:02:02.000000000 +0000\n"
    );
}
