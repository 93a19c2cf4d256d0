//! Directories of a call, and the tools that are compiled from Rust.

use crate::fixture::Tool;
use std::fs;
use std::os::unix::fs::symlink;

/// Makes `work` with a link that leads out to `secret`, and one to the directory `outside`.
fn with_links(tool: &Tool) -> String {
    fs::create_dir(tool.path("work")).unwrap();
    fs::create_dir(tool.path("outside")).unwrap();
    fs::write(tool.path("secret"), "the secret").unwrap();
    symlink(tool.path("secret"), tool.path("work/link")).unwrap();
    symlink("../outside", tool.path("work/out")).unwrap();
    tool.text("work")
}

#[test]
fn symbolic_links_and_parent_paths_cannot_lead_out_of_the_given_directory() {
    let tool = Tool::built("hostile").files("write");
    let dir = format!("{}=/work:rw", with_links(&tool));
    for attempt in [
        "read-link",
        "read-up",
        "read-absolute",
        "write-link",
        "write-through-directory",
    ] {
        let ended = tool.run(&["--dir", &dir, "--", attempt]);
        assert!(
            ended.ended(3).starts_with("refused"),
            "{attempt}: {ended:?}"
        );
    }
    assert_eq!(
        fs::read_to_string(tool.path("secret")).unwrap(),
        "the secret"
    );
    assert_eq!(fs::read_dir(tool.path("outside")).unwrap().count(), 0);
    // Positive controls: a link that stays inside, and the same links for a native program.
    fs::remove_file(tool.path("work/link")).unwrap();
    fs::write(tool.path("work/inside"), "here").unwrap();
    symlink("inside", tool.path("work/link")).unwrap();
    let ended = tool.run(&["--dir", &dir, "--", "read-link"]);
    assert_eq!(ended.ended(0), "here\n");
    fs::write(tool.path("work/out/native"), "x").unwrap();
    assert!(tool.path("outside/native").exists());
}

#[test]
fn read_only_directory_cannot_be_written_and_a_writable_one_can() {
    let tool = Tool::built("hostile").files("write");
    fs::create_dir(tool.path("work")).unwrap();
    let dir = |mode: &str| format!("{}=/work:{mode}", tool.text("work"));
    let read_only = tool.run(&["--dir", &dir("ro"), "--", "write"]);
    assert!(read_only.ended(3).starts_with("refused"));
    assert!(!tool.path("work/made").exists());
    tool.run(&["--dir", &dir("rw"), "--", "write"]).ended(0);
    assert!(tool.path("work/made").exists());
}

#[test]
fn directory_that_the_definition_does_not_allow_is_refused() {
    let tool = |files: &str| {
        let tool = Tool::built("hostile").files(files);
        fs::create_dir(tool.path("work")).unwrap();
        tool
    };
    for (files, mode, allowed) in [
        ("none", "ro", false),
        ("none", "rw", false),
        ("read", "ro", true),
        ("read", "rw", false),
        ("write", "ro", true),
        ("write", "rw", true),
    ] {
        let tool = tool(files);
        let dir = format!("{}=/work:{mode}", tool.text("work"));
        let ended = tool.run(&["--dir", &dir, "--", "environment"]);
        if allowed {
            ended.ended(0);
        } else {
            ended.refused("wasi_directory_refused");
        }
    }
    let missing = tool("read");
    let dir = format!("{}=/work:ro", missing.text("missing"));
    missing
        .run(&["--dir", &dir])
        .refused("wasi_directory_refused");
}

/// The fixture starts the runner with the environment variable MARK.
#[test]
fn module_sees_no_environment_variable() {
    let ended = Tool::built("hostile").run(&["--", "environment"]);
    assert_eq!(ended.ended(0), "0\n");
}

#[test]
fn css_lint_finds_duplicate_declarations_by_line() {
    let tool = Tool::built("css_lint").files("read");
    fs::create_dir(tool.path("work")).unwrap();
    let css = "a { color: red;\n  /* color: x; */ content: \"}\"; }\nb {\n  margin: 0;\n  MARGIN: 1px;\n}\n";
    fs::write(tool.path("work/a.css"), css).unwrap();
    let dir = format!("{}=/work:ro", tool.text("work"));
    let lint = |input: &str| tool.run_with(&["--dir", &dir], input);
    assert_eq!(
        lint(r#"{"path":"a.css"}"#).ended(1),
        "a.css:5: margin overrides line 4\n1 duplicate declarations\n"
    );
    fs::write(tool.path("work/a.css"), css.replace("MARGIN", "padding")).unwrap();
    assert_eq!(
        lint(r#"{"path":"a.css"}"#).ended(0),
        "no duplicate declarations\n"
    );
    assert!(lint(r#"{"path":"b.css"}"#).stderr.contains("b.css"));
    lint("[]").ended(2);
}

#[test]
fn text_replace_changes_files_and_follows_no_link() {
    let tool = Tool::built("text_replace").files("write");
    let dir = format!("{}=/work:rw", with_links(&tool));
    fs::create_dir(tool.path("work/sub")).unwrap();
    fs::write(tool.path("work/sub/a.txt"), "the secret of the secret").unwrap();
    let ended = tool.run_with(&["--dir", &dir], r#"{"from":"secret","to":"\u0041"}"#);
    assert_eq!(ended.ended(0), "/work/sub/a.txt: 2\n2 replacements\n");
    let changed = fs::read_to_string(tool.path("work/sub/a.txt")).unwrap();
    assert_eq!(changed, "the A of the A");
    assert_eq!(
        fs::read_to_string(tool.path("secret")).unwrap(),
        "the secret"
    );
}
