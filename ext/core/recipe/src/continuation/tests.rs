//! Tests of the repetition of a step: when it ends, its failure codes and its evidence; and of JSON
//! pointers in generated documents.

use super::*;
use serde_json::json;

fn policy(most: u32, mappings: Value) -> Continuation {
    serde_json::from_value(json!({
        "maxIterations": most,
        "while": {"pointer": "/more", "equals": true},
        "inputMappings": mappings,
    }))
    .unwrap()
}

fn cursor(most: u32) -> Continuation {
    policy(
        most,
        json!([{"from": "/next", "to": {"arg": "input", "pointer": "/cursor"}}]),
    )
}

fn args(list: &[&str]) -> Vec<String> {
    list.iter().map(|a| (*a).to_owned()).collect()
}

fn answer(result: &Value) -> Executed<'_> {
    Executed::Answered {
        exit_code: 0,
        result,
    }
}

#[test]
fn step_repeats_with_mapped_arguments_until_its_predicate_is_false() {
    let continuation = cursor(10);
    let mut run = Loop::new(&continuation);
    let first = args(&["name=x", "input={\"cursor\":0,\"keep\":[1]}"]);
    let page = json!({"more": true, "next": {"page": 2}});
    let Next::Again(second) = run.after(&first, answer(&page)) else {
        panic!("should go on");
    };
    assert_eq!(
        second,
        args(&["name=x", "input={\"cursor\":{\"page\":2},\"keep\":[1]}"])
    );
    let last = json!({"more": false});
    assert_eq!(run.after(&second, answer(&last)), Next::Completed);
    assert_eq!(run.after(&second, answer(&page)), Next::Completed);
    let evidence = run.evidence();
    assert_eq!(evidence["schema"], CONTINUATION_EVIDENCE);
    assert_eq!(evidence["status"], "completed");
    assert_eq!(evidence["iterations"], 2);
    assert_eq!(evidence["executions"][0]["result"], page);
    assert_eq!(
        evidence["executions"][1]["resultBytes"],
        last.to_string().len()
    );
    assert_eq!(evidence["policy"]["while"]["equals"], true);
    assert_eq!(
        evidence["policy"]["while"]["equalsSha256"],
        "b5bea41b6c623f7c09f1bf24dcae58ebab3c0cdd90ad966bc43a45b44867e12b"
    );
    assert_eq!(evidence.get("diagnostics"), None);
}

#[test]
fn each_kind_of_failure_of_a_repeated_step_gives_the_expected_code() {
    let good = args(&["input={\"cursor\":0}"]);
    let more = json!({"more": true, "next": 1});
    let rows: &[(&[&str], Executed<'_>, &str)] = &[
        (&["input={}"], Executed::Error, "execution-error"),
        (
            &["input={}"],
            Executed::Ended { exit_code: 3 },
            "command-failed",
        ),
        (
            &["input={}"],
            Executed::Answered {
                exit_code: 1,
                result: &more,
            },
            "command-failed",
        ),
        (
            &["input={}"],
            Executed::Ended { exit_code: 0 },
            "predicate-value-missing",
        ),
        (&["other={}"], answer(&more), "target-argument-missing"),
        (&["inputs={}"], answer(&more), "target-argument-missing"),
        (
            &["input={}", "input={}"],
            answer(&more),
            "target-argument-ambiguous",
        ),
        (&["input={"], answer(&more), "target-argument-not-json"),
        (&["input=7"], answer(&more), "target-argument-not-container"),
        (&["input=[]"], answer(&more), "target-pointer-missing"),
    ];
    let continuation = cursor(5);
    for (given, executed, code) in rows {
        let mut run = Loop::new(&continuation);
        let Next::Failed(failure) = run.after(&args(given), *executed) else {
            panic!("{code} did not fail");
        };
        assert_eq!(failure.code(), *code);
        let evidence = run.evidence();
        assert_eq!(evidence["status"], "failed");
        assert_eq!(evidence["diagnostics"][0]["code"], *code);
        // The step has failed, so another call returns the same failure.
        assert_eq!(run.after(&good, answer(&more)), Next::Failed(failure));
    }
    for (result, code) in [
        (json!({"next": 1}), "predicate-value-missing"),
        (json!({"more": true}), "mapping-source-missing"),
        (json!([true]), "predicate-value-missing"),
    ] {
        let mut run = Loop::new(&continuation);
        let Next::Failed(failure) = run.after(&good, answer(&result)) else {
            panic!("{code} did not fail");
        };
        assert_eq!(failure.code(), code);
    }
    let root = policy(
        5,
        json!([{"from": "/next", "to": {"arg": "input", "pointer": ""}}]),
    );
    assert!(matches!(
        Loop::new(&root).after(&good, answer(&more)),
        Next::Failed(Failure::TargetRootMutationUnsupported { .. })
    ));
    let deep = policy(
        5,
        json!([{"from": "/next", "to": {"arg": "input", "pointer": "/a/b"}}]),
    );
    assert!(matches!(
        Loop::new(&deep).after(&good, answer(&more)),
        Next::Failed(Failure::TargetPointerMissing { .. })
    ));
}

#[test]
fn step_whose_condition_is_still_true_after_max_iterations_fails() {
    let continuation = cursor(3);
    let mut run = Loop::new(&continuation);
    let more = json!({"more": true, "next": 1});
    let given = args(&["input={}"]);
    assert!(matches!(run.after(&given, answer(&more)), Next::Again(_)));
    assert!(matches!(run.after(&given, answer(&more)), Next::Again(_)));
    let Next::Failed(failure) = run.after(&given, answer(&more)) else {
        panic!("ran on");
    };
    assert_eq!(failure.code(), "max-iterations-exhausted");
    let evidence = run.evidence();
    assert_eq!(evidence["status"], "exhausted");
    assert_eq!(evidence["iterations"], 3);
    assert_eq!(
        evidence["diagnostics"][0]["code"],
        "max-iterations-exhausted"
    );
}

#[test]
fn repeated_step_fails_if_the_source_of_one_of_its_two_mappings_is_missing() {
    let two = policy(
        5,
        json!([
            {"from": "/next", "to": {"arg": "input", "pointer": "/cursor"}},
            {"from": "/none", "to": {"arg": "input", "pointer": "/other"}},
        ]),
    );
    let given = args(&["input={\"cursor\":0}"]);
    let mut run = Loop::new(&two);
    let next = run.after(&given, answer(&json!({"more": true, "next": 1})));
    assert!(matches!(
        next,
        Next::Failed(Failure::MappingSourceMissing { .. })
    ));
}

#[test]
fn long_step_result_is_recorded_as_a_digest_without_its_content() {
    let continuation = cursor(5);
    let mut run = Loop::new(&continuation);
    let long = json!({"more": false, "text": "x".repeat(5000)});
    let _ = run.after(&args(&[]), answer(&long));
    let row = &run.evidence()["executions"][0];
    assert_eq!(row["resultTruncated"], true);
    assert_eq!(row.get("result"), None);
    assert_eq!(row["resultSha256"].as_str().unwrap().len(), 64);
}

#[test]
fn json_equality_ignores_number_form_and_member_order() {
    assert!(equal(&json!(1), &json!(1.0)));
    assert!(equal(&json!({"a":[1],"b":2}), &json!({"b":2.0,"a":[1]})));
    assert!(!equal(&json!({"a":1}), &json!({"a":1,"b":1})));
    assert!(!equal(&json!([1, 2]), &json!([2, 1])));
    assert!(!equal(&json!("1"), &json!(1)));
    assert!(!equal(&json!(null), &json!(false)));
}

/// Generates pseudo-random documents; the same seed gives the same document.
struct Random(u64);

impl Random {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
    fn document(&mut self, depth: u32) -> Value {
        match self.roll(if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => json!(self.roll(9)),
            2 => json!(self.roll(2) == 0),
            3 => json!(["", "a~/b", "é", "x"][self.roll(4) as usize]),
            4 => (0..self.roll(4))
                .map(|_| self.document(depth - 1))
                .collect(),
            _ => Value::Object(
                (0..self.roll(4))
                    .map(|_| {
                        let key = ["", "a", "b/c", "~", "~1", "0", "-"][self.roll(7) as usize];
                        (key.to_owned(), self.document(depth - 1))
                    })
                    .collect(),
            ),
        }
    }
}

/// Collects the pointer and value of every position in a document.
fn places(value: &Value, at: String, found: &mut Vec<(String, Value)>) {
    found.push((at.clone(), value.clone()));
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let token = key.replace('~', "~0").replace('/', "~1");
                places(value, format!("{at}/{token}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn json_pointer_to_any_position_finds_and_sets_its_value() {
    let mut dice = Random(0x9e37_79b9_7f4a_7c15);
    let mut looked = 0;
    for _ in 0..3000 {
        let document = dice.document(4);
        let mut all = Vec::new();
        places(&document, String::new(), &mut all);
        for (text, value) in all {
            let pointer = Pointer::parse(&text).unwrap();
            assert_eq!(pointer.find(&document), Some(&value), "{text} {document}");
            assert_eq!(document.pointer(&text), Some(&value));
            let mut changed = document.clone();
            let mark = json!({"mark": 1});
            let put = pointer.put(&mut changed, mark.clone());
            if text.is_empty() {
                assert_eq!(put, Err(PutError::Root));
                assert_eq!(changed, document);
            } else {
                assert_eq!(put, Ok(()));
                assert_eq!(pointer.find(&changed), Some(&mark));
                // Restoring the old value restores the document, so nothing else has changed.
                pointer.put(&mut changed, value).unwrap();
                assert!(equal(&changed, &document));
            }
            looked += 1;
        }
    }
    assert!(looked > 1000, "{looked}");
}

#[test]
fn repeated_step_never_runs_more_often_than_max_iterations() {
    let mut dice = Random(42);
    for _ in 0..300 {
        let most = 2 + u32::try_from(dice.roll(20)).unwrap();
        let continuation = cursor(most);
        let mut run = Loop::new(&continuation);
        let mut given = args(&["input={}"]);
        let mut times = 0;
        loop {
            times += 1;
            assert!(times <= most);
            let result = json!({"more": dice.roll(8) != 0, "next": dice.document(2)});
            match run.after(&given, answer(&result)) {
                Next::Again(next) => given = next,
                Next::Completed => {
                    assert_eq!(result["more"], false);
                    break;
                }
                Next::Failed(failure) => {
                    assert_eq!(failure.code(), "max-iterations-exhausted");
                    assert_eq!(times, most);
                    break;
                }
            }
        }
        assert_eq!(run.evidence()["iterations"], times);
    }
}
