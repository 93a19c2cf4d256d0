//! Scenario tests of patches (`tests/fixtures/edits/NNN_name/{input,patch,expected}`), a
//! comparison with git for unified diffs that git accepts, and random edits of random texts.
//!
//! A scenario folder has `patch`, files below `input`, and either files below `expected` or a file
//! `error` with a text that the error must contain.

use super::{Files, Scope, apply, parse, replace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// File contents by path.
type Tree = BTreeMap<String, Vec<u8>>;

fn fixtures() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../tests/fixtures/edits")
}

fn tree(root: &Path) -> Tree {
    let mut files = BTreeMap::new();
    let mut queue = vec![root.to_path_buf()];
    while let Some(directory) = queue.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            if entry.file_type().unwrap().is_dir() {
                queue.push(entry.path());
            } else {
                let name = entry.path();
                let name = name.strip_prefix(root).unwrap().to_str().unwrap();
                files.insert(name.to_owned(), std::fs::read(entry.path()).unwrap());
            }
        }
    }
    files
}

/// Applies the patch `text` to `input` and returns the new files and notes, or the error message.
fn patched(input: &Tree, text: &str) -> Result<(Tree, Vec<String>), String> {
    let patch = parse(text).map_err(|e| e.to_string())?;
    let before: Files = patch
        .paths()
        .into_iter()
        .map(|path| (path.clone(), input.get(&path).cloned()))
        .collect();
    let applied = apply(&patch, &before).map_err(|e| e.to_string())?;
    let mut files = input.clone();
    for (path, bytes) in applied.files {
        match bytes {
            Some(bytes) => files.insert(path, bytes),
            None => files.remove(&path),
        };
    }
    Ok((files, applied.notes))
}

/// Applies the patch with `git apply`; `None` when git refuses the patch.
fn git(input: &Tree, patch: &str) -> Option<Tree> {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in input {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let patch_file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(patch_file.path(), patch).unwrap();
    let applied = Command::new("git")
        .args(["-c", "core.autocrlf=false", "apply", "--whitespace=nowarn"])
        .arg(patch_file.path())
        .current_dir(directory.path())
        .env(
            "GIT_CEILING_DIRECTORIES",
            directory.path().parent().unwrap(),
        )
        .stderr(Stdio::null())
        .status()
        .unwrap();
    applied.success().then(|| tree(directory.path()))
}

#[test]
fn first_of_two_matches_below_a_heading_gets_the_note_that_its_indentation_differs() {
    let file = "class A {\n}\nclass B {\n\t\trun();\n\t\trun();\n}\n";
    let input = Tree::from([("a.php".to_owned(), file.as_bytes().to_vec())]);
    let patch = |old: &str| {
        format!(
            "*** Begin Patch\n*** Update File: a.php\n@@ class B {{\n-{old}\n+\t\tstop();\n*** End Patch\n"
        )
    };
    let changed = file.replacen("run", "stop", 1).into_bytes();

    let (files, notes) = patched(&input, &patch("run();")).unwrap();
    assert_eq!(files["a.php"], changed);
    assert!(
        notes.len() == 1 && notes[0].contains("in indentation"),
        "{notes:?}"
    );

    let (files, notes) = patched(&input, &patch("\t\trun();")).unwrap();
    assert_eq!((&files["a.php"], notes), (&changed, Vec::new()));
}

#[test]
fn each_patch_fixture_yields_its_expected_files_or_error() {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    assert!(folders.len() >= 30, "{} scenarios", folders.len());
    let (mut failures, mut judged) = (Vec::new(), 0);
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let input = tree(&folder.join("input"));
        let text = std::fs::read_to_string(folder.join("patch")).unwrap();
        let result = patched(&input, &text);
        if let Ok(error) = std::fs::read_to_string(folder.join("error")) {
            match result {
                Err(why) if why.contains(error.trim()) => {}
                other => failures.push(format!("{name}: wanted {:?}, got {other:?}", error.trim())),
            }
            continue;
        }
        let expected = tree(&folder.join("expected"));
        match result {
            Ok((files, _)) if files == expected => {}
            other => failures.push(format!("{name}: {other:?}")),
        }
        if !text.contains("*** Begin Patch")
            && let Some(by_git) = git(&input, &text)
        {
            judged += 1;
            if by_git != expected {
                failures.push(format!("{name}: git makes {by_git:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(judged >= 8, "git accepted {judged} scenarios only");
}

/// Deterministic pseudo-random numbers.
struct Random(u64);

impl Random {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % below
    }

    fn line(&mut self) -> String {
        let words = [
            "",
            "a",
            "\t}",
            "if ( $x ) {",
            "é ß",
            "-- sql",
            "+++",
            "@@ -1 +1 @@",
            "\\ x",
            "  ",
        ];
        words[self.roll(words.len())].to_owned()
    }

    fn text(&mut self) -> Vec<String> {
        (0..self.roll(40)).map(|_| self.line()).collect()
    }

    fn changed(&mut self, lines: &[String]) -> Vec<String> {
        let mut lines = lines.to_vec();
        for _ in 0..=self.roll(4) {
            let at = self.roll(lines.len() + 1);
            match self.roll(3) {
                0 => lines.insert(at, self.line()),
                1 if at < lines.len() => drop(lines.remove(at)),
                _ if at < lines.len() => lines[at] = self.line(),
                _ => {}
            }
        }
        lines
    }

    fn joined(&mut self, lines: &[String]) -> String {
        let end = ["\n", "\r\n"][usize::from(self.roll(5) == 0)];
        let mut text = lines.join(end);
        if !lines.is_empty() && self.roll(4) != 0 {
            text.push_str(end);
        }
        text
    }
}

#[test]
fn random_git_diff_gives_the_new_file_or_is_refused_for_a_hunk_without_context() {
    let mut dice = Random(0x5eed_1234_5678_9abc);
    let directory = tempfile::tempdir().unwrap();
    let (old_path, new_path) = (directory.path().join("old"), directory.path().join("new"));
    let (mut applied, mut refused) = (0, 0);
    for round in 0..300 {
        let lines = dice.text();
        let before = dice.joined(&lines);
        let changed = dice.changed(&lines);
        let after = dice.joined(&changed);
        if before == after {
            continue;
        }
        std::fs::write(&old_path, &before).unwrap();
        std::fs::write(&new_path, &after).unwrap();
        let context = format!("-U{}", 1 + dice.roll(4));
        let diff = Command::new("git")
            .args([
                "diff",
                "--no-index",
                "--text",
                "--no-color",
                &context,
                "old",
                "new",
            ])
            .current_dir(directory.path())
            .output()
            .unwrap();
        let diff = String::from_utf8(diff.stdout).unwrap();
        // `git diff` compared two files with different names; give both the same name.
        let diff = diff
            .replace("diff --git a/old b/new", "diff --git a/f b/f")
            .replace("--- a/old\n+++ b/new\n", "--- a/f\n+++ b/f\n");
        let input = BTreeMap::from([("f".to_owned(), before.clone().into_bytes())]);
        match patched(&input, &diff) {
            Ok((files, notes)) => {
                assert_eq!(
                    String::from_utf8_lossy(&files["f"]),
                    after,
                    "round {round}\n{diff}\nof {before:?}"
                );
                assert!(notes.is_empty(), "round {round}: {notes:?}");
                applied += 1;
            }
            // The line number in a hunk header of git is exact, so no hunk is ambiguous. Only a
            // hunk without any context is refused.
            Err(why) => {
                refused += 1;
                assert!(
                    why.contains("without any context"),
                    "round {round}: {why}\n{diff}"
                );
            }
        }
    }
    assert!(
        applied > 200 && refused < 40,
        "{applied} applied, {refused} refused"
    );
}

#[test]
fn random_hunk_in_begin_patch_format_replaces_its_line() {
    let mut dice = Random(0xabcd_ef01_2345_6789);
    let mut applied = 0;
    for round in 0..300 {
        // All lines differ, so every hunk has a single position.
        let lines: Vec<String> = (0..3 + dice.roll(30))
            .map(|n| format!("{n} {}", dice.line()))
            .collect();
        let at = dice.roll(lines.len());
        let mut after = lines.clone();
        after[at] = format!("new {}", dice.line());
        let before = lines.join("\n") + "\n";
        let mut text = String::from("*** Begin Patch\n*** Update File: f\n@@\n");
        for (index, line) in lines.iter().enumerate().skip(at.saturating_sub(2)).take(5) {
            let sign = if index == at { '-' } else { ' ' };
            text.push_str(&format!("{sign}{line}\n"));
            if index == at {
                text.push_str(&format!("+{}\n", after[at]));
            }
        }
        text.push_str("*** End Patch\n");
        let input = BTreeMap::from([("f".to_owned(), before.into_bytes())]);
        let (files, _) =
            patched(&input, &text).unwrap_or_else(|e| panic!("round {round}: {e}\n{text}"));
        assert_eq!(
            String::from_utf8_lossy(&files["f"]),
            after.join("\n") + "\n",
            "{text}"
        );
        applied += 1;
    }
    assert_eq!(applied, 300);
}

#[test]
fn replacement_and_its_reverse_restore_the_text() {
    let mut dice = Random(0x1357_9bdf_2468_ace0);
    for _ in 0..300 {
        let lines: Vec<String> = (0..1 + dice.roll(20))
            .map(|n| format!("{n}:{}", dice.line()))
            .collect();
        let text = dice.joined(&lines);
        let at = dice.roll(lines.len());
        let (old, new) = (lines[at].as_str(), format!("x{}y", dice.roll(1000)));
        let Ok(there) = replace(text.as_bytes(), old, &new, Scope::Once) else {
            // The old text may occur twice: `1:a` is also a substring of `11:a`.
            continue;
        };
        let back = replace(&there.bytes, &new, old, Scope::Once).unwrap();
        assert_eq!(back.bytes, text.as_bytes());
    }
}

#[test]
fn randomly_damaged_patch_is_parsed_and_applied_without_panic() {
    let whole = std::fs::read_to_string(fixtures().join("001_git_update/patch")).unwrap();
    let begin = "*** Begin Patch\n*** Update File: f\n@@ x\n a\n-b\n+c\n*** End Patch\n";
    for text in [whole.as_str(), begin] {
        let mut dice = Random(0x0f0f_f0f0_1234_4321);
        for _ in 0..500 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=dice.roll(3) {
                let at = dice.roll(bytes.len());
                match dice.roll(3) {
                    0 => drop(bytes.remove(at)),
                    1 => bytes[at] = b"\n @-+*\\\"a\r\t"[dice.roll(11)],
                    _ => bytes.truncate(at.max(1)),
                }
            }
            if let Ok(patch) = parse(&String::from_utf8_lossy(&bytes)) {
                let before = patch
                    .paths()
                    .into_iter()
                    .map(|p| (p, Some(b"a\nb\n".to_vec())));
                let _ = apply(&patch, &before.collect());
            }
        }
    }
}
