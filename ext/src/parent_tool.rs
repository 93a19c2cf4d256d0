//! Requests of the built-in agent for tools of its parent, answered by a PHP function.
//!
//! The function judges each call itself; here is only the envelope: the result belongs to the
//! request whatever the function says of that, and what is no result is a failure, never a
//! success.

use crate::arguments::Answer;
use crate::convert::from_zval;
use crate::guard::Failure;
use ext_php_rs::types::ZendCallable;
use ext_php_rs::zend::ExecutorGlobals;
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, ParentToolStatus, schema_id};

/// Asks the function. An exception of it leaves the wait.
pub(crate) fn call(callable: &ZendCallable<'_>, request: Value) -> Result<Value, Failure> {
    let asked = request.clone();
    let answer = match callable.try_call(vec![&Answer(request)]) {
        Ok(answer) => answer,
        Err(_) if ExecutorGlobals::has_exception() => return Err(Failure::Pending),
        Err(_) => {
            return Err(ErrorBody::new(
                ErrorCode::InputInvalid,
                "onToolRequest cannot be called; pass a function that accepts one array",
            )
            .into());
        }
    };
    let given = match from_zval(&answer, "onToolRequest") {
        Ok(Value::Object(map)) => Some(map),
        Ok(_) | Err(_) => None,
    };
    Ok(match given {
        Some(map) if is_result(&map) => addressed(map, &asked),
        Some(_) | None => failed(
            &asked,
            "the parent answered something that is no parent-tool-result/v1",
        ),
    })
}

/// What a caller without a function answers.
pub(crate) fn unavailable(request: &Value) -> Value {
    let error = json!({"code": "unavailable", "message": "the parent of this run answers no tools", "retryable": false});
    let result = Map::from_iter([
        ("status".to_owned(), json!("unavailable")),
        ("error".to_owned(), error),
    ]);
    addressed(result, request)
}

fn failed(request: &Value, why: &str) -> Value {
    let error = json!({"code": "invalid-result", "message": why, "retryable": false});
    let result = Map::from_iter([
        ("status".to_owned(), json!("failed")),
        ("error".to_owned(), error),
    ]);
    addressed(result, request)
}

fn is_result(map: &Map<String, Value>) -> bool {
    let status = map.get("status").cloned().unwrap_or_default();
    serde_json::from_value::<ParentToolStatus>(status).is_ok()
}

/// The result with the address of its request.
fn addressed(mut result: Map<String, Value>, request: &Value) -> Value {
    result.insert("schema".to_owned(), json!(schema_id::PARENT_TOOL_RESULT));
    result.insert("version".to_owned(), json!(1));
    for name in ["request_id", "tool", "operation"] {
        result.insert(name.to_owned(), request[name].clone());
    }
    Value::Object(result)
}
