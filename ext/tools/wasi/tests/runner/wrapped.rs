//! The runner inside each process wrapper: the same tool, the same answer, the same change.

use crate::fixture::{RUNNER, Tool};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use wp_codebox_contracts::OuterSandboxKind;
use wp_codebox_process_wrapper::{
    Bubblewrap, GvisorRoot, MountAccess, NoSandbox, ProcessSandbox, ToolCall, ToolDirectory,
    find_program, prepare_root,
};

#[test]
fn tool_in_each_wrapper_gives_the_same_answer_and_changes_only_its_directory() {
    for kind in [
        OuterSandboxKind::None,
        OuterSandboxKind::Bubblewrap,
        OuterSandboxKind::Gvisor,
    ] {
        let tool = Tool::built("text_replace").files("write");
        tool.compile().ended(0);
        fs::create_dir_all(tool.path("root/work")).unwrap();
        fs::create_dir(tool.path("runsc")).unwrap();
        fs::write(tool.path("root/work/a.txt"), "one two").unwrap();
        let command = ToolCall {
            runner: RUNNER.to_owned(),
            definition: tool.text("d.json"),
            module: tool.text("m.wasm"),
            compiled: Some(tool.text("c.cwasm")),
            directory: Some(ToolDirectory {
                host: tool.text("root/work"),
                access: MountAccess::Write,
            }),
            args: Vec::new(),
        }
        .command(kind);
        let program = find_program(kind, None).unwrap();
        let sandbox: Box<dyn ProcessSandbox> = match (kind, program) {
            (OuterSandboxKind::Bubblewrap, Some(program)) => Box::new(Bubblewrap { program }),
            (OuterSandboxKind::Gvisor, Some(program)) => {
                prepare_root(Path::new(&tool.path("root")), &command).unwrap();
                Box::new(GvisorRoot {
                    program,
                    directory: tool.text("runsc"),
                    root: tool.text("root"),
                })
            }
            _ => Box::new(NoSandbox),
        };
        let wrapped = sandbox.wrap(&command);
        let mut child = wrapped
            .to_std()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = br#"{"from":"two","to":"three"}"#;
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            told, "/work/a.txt: 1\n1 replacements\n",
            "{kind:?}: {output:?}"
        );
        let changed = fs::read_to_string(tool.path("root/work/a.txt")).unwrap();
        assert_eq!(changed, "one three", "{kind:?}");
        let record = serde_json::to_string(&wrapped.audit).unwrap();
        assert!(
            !record.contains(tool.place.path().to_str().unwrap()),
            "{record}"
        );
    }
}
