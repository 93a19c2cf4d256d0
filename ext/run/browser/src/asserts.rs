//! Assertions about a page: `assert=` arguments and `expect` steps.
//!
//! `[advisory:][frame:<selector> >> | frame-url:<part> >> ]<form>`, where a form is one of
//! `exists:<selector>`, `not-exists:<selector>`, `visible:<selector>`, `hidden:<selector>`,
//! `count:<selector>=<n>` (also `>=`, `<=`), `text:<selector>=<part>`,
//! `attr:<selector>@<name>[=<value>]`, `url:<part>`, `title:<part>`, `status:<code>`, `no-errors`,
//! `no-console-errors` and `no-php-errors`.

use super::events::cut;
use super::observed::Observed;
use serde_json::{Value, json};

/// Document in which an assertion searches: the page or one of its frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Main,
    /// Document of the first frame element that matches.
    Selector(String),
    /// Document of the first frame whose URL contains this text.
    Url(String),
}

/// Element of a page: a selector or locator, and the document in which it is searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) selector: String,
    pub(super) frame: Frame,
}

impl Element {
    /// Returns the element with this selector in the page itself.
    pub(super) fn of_page(selector: impl Into<String>) -> Self {
        Self {
            selector: selector.into(),
            frame: Frame::Main,
        }
    }

    /// Returns the query by which `page.js` looks up the element.
    pub(super) fn query(&self) -> Value {
        query(&self.frame, Some(&self.selector), None)
    }
}

/// Kinds of locators: a selector that begins with one of these and `=` is not a CSS selector.
const LOCATORS: &[&str] = &[
    "css",
    "text",
    "label",
    "role",
    "placeholder",
    "alt",
    "title",
    "testid",
    "data-testid",
    "xpath",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Equal,
    AtLeast,
    AtMost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    Exists(String),
    NotExists(String),
    Visible(String),
    Hidden(String),
    Count(String, Order, u64),
    Text(String, String),
    Attribute(String, String, Option<String>),
    Url(String),
    Title(String),
    Status(u64),
    NoErrors,
    NoConsoleErrors,
    NoPhpErrors,
    /// A form control has a state, e.g. enabled or checked. The control is the first visible
    /// element that matches the selector, or the first match if none is visible. Only steps can use
    /// this form, not `assert=` arguments.
    State(String, ControlState),
}

/// State of a form control that an assertion can require.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlState {
    Enabled,
    Disabled,
    Checked,
    Unchecked,
}

/// Whether a failed assertion fails the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Required,
    Advisory,
}

/// One condition that a page must meet, parsed from an `assert=` argument or an `expect` step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assertion {
    /// Assertion as the caller wrote it.
    pub(super) text: String,
    pub(super) weight: Weight,
    pub(super) frame: Frame,
    pub(super) form: Form,
}

const FORMS: &str = "exists:, not-exists:, visible:, hidden:, count:, text:, attr:, url:, title:, status:, no-errors, no-console-errors, no-php-errors; optionally after advisory:, frame:<selector> >> or frame-url:<part> >>";

impl Assertion {
    /// Parses an assertion; the error text is one sentence.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fail = |why: &str| Err(format!("assert {text:?}: {why}; forms are {FORMS}"));
        if text.len() > 2000 {
            return fail("it is longer than 2000 bytes");
        }
        let (weight, rest) = match text.strip_prefix("advisory:") {
            Some(rest) => (Weight::Advisory, rest),
            None => (Weight::Required, text),
        };
        let framed = |rest: &str| {
            rest.split_once(" >> ")
                .map(|(frame, form)| (frame.trim().to_owned(), form.to_owned()))
        };
        let (frame, rest) = if let Some(rest) = rest.strip_prefix("frame-url:") {
            match framed(rest) {
                Some((part, form)) => (Frame::Url(part), form),
                None => return fail("frame-url: needs ` >> ` before the form"),
            }
        } else if let Some(rest) = rest.strip_prefix("frame:") {
            match framed(rest) {
                Some((selector, form)) => (Frame::Selector(selector), form),
                None => return fail("frame: needs ` >> ` before the form"),
            }
        } else {
            (Frame::Main, rest.to_owned())
        };
        let (kind, rest) = rest.split_once(':').unwrap_or((&rest, ""));
        let rest = rest.trim();
        let selector = || rest.to_owned();
        let form = match kind {
            "exists" => Form::Exists(selector()),
            "not-exists" => Form::NotExists(selector()),
            "visible" => Form::Visible(selector()),
            "hidden" => Form::Hidden(selector()),
            "url" => Form::Url(selector()),
            "title" => Form::Title(selector()),
            "no-errors" if rest.is_empty() => Form::NoErrors,
            "no-console-errors" if rest.is_empty() => Form::NoConsoleErrors,
            "no-php-errors" if rest.is_empty() => Form::NoPhpErrors,
            "status" => match rest.parse() {
                Ok(code @ 100..=599) => Form::Status(code),
                _ => return fail("a status is a number from 100 to 599"),
            },
            "count" => match count(rest) {
                Some(form) => form,
                None => return fail("count is <selector>=<n>, <selector>>=<n> or <selector><=<n>"),
            },
            "text" => match outside(rest, '=') {
                Some((selector, part)) => Form::Text(selector, part),
                None => return fail("text is <selector>=<part>"),
            },
            "attr" => match outside(rest, '@') {
                Some((selector, attribute)) => {
                    let (name, value) = match attribute.split_once('=') {
                        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                        None => (attribute, None),
                    };
                    Form::Attribute(selector, name, value)
                }
                None => return fail("attr is <selector>@<name> or <selector>@<name>=<value>"),
            },
            _ => return fail("unknown form"),
        };
        let empty = match &form {
            Form::NoErrors | Form::NoConsoleErrors | Form::NoPhpErrors | Form::Status(_) => false,
            Form::Exists(s)
            | Form::NotExists(s)
            | Form::Visible(s)
            | Form::Hidden(s)
            | Form::Count(s, ..)
            | Form::Text(s, _)
            | Form::Attribute(s, ..)
            | Form::Url(s)
            | Form::Title(s)
            | Form::State(s, _) => s.is_empty(),
        };
        if empty {
            return fail("a value must follow the colon");
        }
        Ok(Self {
            text: text.to_owned(),
            weight,
            frame,
            form,
        })
    }

    /// Creates the assertion of the argument `expect-status`.
    pub(super) fn of_status(status: u64) -> Self {
        Self {
            text: format!("status:{status}"),
            weight: Weight::Required,
            frame: Frame::Main,
            form: Form::Status(status),
        }
    }

    /// Creates the assertion of an `expect` or `waitFor` step that names a selector and a state.
    pub(super) fn of_state(element: &Element, state: &str) -> Result<Self, String> {
        let name = element.selector.clone();
        let (form_name, form) = match state {
            "visible" => (state, Form::Visible(name)),
            "hidden" => (state, Form::Hidden(name)),
            "attached" => ("exists", Form::Exists(name)),
            "detached" => ("not-exists", Form::NotExists(name)),
            "enabled" => (state, Form::State(name, ControlState::Enabled)),
            "disabled" => (state, Form::State(name, ControlState::Disabled)),
            "checked" => (state, Form::State(name, ControlState::Checked)),
            "unchecked" => (state, Form::State(name, ControlState::Unchecked)),
            other => return Err(format!("unknown state {other:?}")),
        };
        Ok(Self {
            text: format!("{form_name}:{}", element.selector),
            weight: Weight::Required,
            frame: element.frame.clone(),
            form,
        })
    }

    /// Returns the query by which `page.js` looks up in the document what this assertion needs.
    pub(super) fn query(&self) -> Value {
        let (selector, attribute) = match &self.form {
            Form::Exists(s)
            | Form::NotExists(s)
            | Form::Visible(s)
            | Form::Hidden(s)
            | Form::Count(s, ..)
            | Form::Text(s, _)
            | Form::State(s, _) => (Some(s), None),
            Form::Attribute(s, name, _) => (Some(s), Some(name)),
            Form::Url(_)
            | Form::Title(_)
            | Form::Status(_)
            | Form::NoErrors
            | Form::NoConsoleErrors
            | Form::NoPhpErrors => (None, None),
        };
        query(
            &self.frame,
            selector.map(String::as_str),
            attribute.map(String::as_str),
        )
    }

    /// Checks the assertion against `found`, the result of the query by `page.js`. The error says
    /// what was found instead.
    pub(super) fn check(&self, found: &Value, observed: &Observed) -> Result<(), String> {
        if let Some(error) = found.get("error").and_then(Value::as_str) {
            return Err(cut(error, 300));
        }
        let number = |name: &str| found.get(name).and_then(Value::as_u64).unwrap_or(0);
        let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
        let (count, visible) = (number("count"), number("visible"));
        let (holds, why) = match &self.form {
            Form::Exists(_) => (count > 0, "no element matches".to_owned()),
            Form::NotExists(_) => (count == 0, format!("{count} elements match")),
            Form::Visible(_) => (
                visible > 0,
                format!("{count} elements match, none is visible"),
            ),
            Form::Hidden(_) => (visible == 0, format!("{visible} elements are visible")),
            Form::Count(_, order, wanted) => (
                match order {
                    Order::Equal => count == *wanted,
                    Order::AtLeast => count >= *wanted,
                    Order::AtMost => count <= *wanted,
                },
                format!("{count} elements match"),
            ),
            Form::Text(_, part) => (
                count > 0 && text("text").contains(part.as_str()),
                format!("the text is {:?}", cut(text("text"), 200)),
            ),
            Form::Attribute(_, _, wanted) => {
                let value = found.get("attribute").and_then(Value::as_str);
                (
                    value.is_some_and(|value| wanted.as_ref().is_none_or(|w| w == value)),
                    format!("the attribute is {:?}", value.map(|v| cut(v, 200))),
                )
            }
            Form::State(_, state) => {
                let is = |name: &str| found.get(name).and_then(Value::as_bool);
                let (has, wanted, is_not) = match state {
                    ControlState::Enabled => (is("disabled"), false, "disabled"),
                    ControlState::Disabled => (is("disabled"), true, "enabled"),
                    ControlState::Checked => (is("checked"), true, "unchecked"),
                    ControlState::Unchecked => (is("checked"), false, "checked"),
                };
                (
                    has == Some(wanted),
                    has.map_or_else(
                        || "no element matches".to_owned(),
                        |_| format!("the element is {is_not}"),
                    ),
                )
            }
            Form::Url(part) => (
                text("url").contains(part.as_str()),
                format!("the URL is {:?}", cut(text("url"), 300)),
            ),
            Form::Title(part) => (
                text("title").contains(part.as_str()),
                format!("the title is {:?}", cut(text("title"), 200)),
            ),
            Form::Status(code) => (
                observed.tab.status == Some(*code),
                observed.tab.status.map_or_else(
                    || "the page has no status".to_owned(),
                    |status| format!("the status is {status}"),
                ),
            ),
            Form::NoErrors => (
                observed.errors.total == 0,
                observed
                    .errors
                    .kept
                    .first()
                    .map_or_else(String::new, |e| cut(&e.text, 300)),
            ),
            Form::NoPhpErrors => (
                observed.php.total == 0,
                observed.php.kept.first().map_or_else(String::new, |error| {
                    cut(&format!("{}: {error}", error.level), 500)
                }),
            ),
            Form::NoConsoleErrors => {
                let first = observed
                    .console
                    .kept
                    .iter()
                    .find(|line| line.level == "error");
                (
                    first.is_none(),
                    first.map_or_else(String::new, |line| cut(&line.text, 300)),
                )
            }
        };
        if holds { Ok(()) } else { Err(why) }
    }
}

/// Returns a JSON query for `page.js`, which looks up elements in a document.
pub(super) fn query(frame: &Frame, selector: Option<&str>, attribute: Option<&str>) -> Value {
    let (frame, frame_url) = match frame {
        Frame::Main => (None, None),
        Frame::Selector(selector) => (Some(selector), None),
        Frame::Url(part) => (None, Some(part)),
    };
    json!({"frame": frame, "frameUrl": frame_url, "selector": selector, "attribute": attribute})
}

/// Splits a text at the first `sign` outside of brackets and quotes; the `=` of a locator such as
/// `text=` does not count.
fn outside(text: &str, sign: char) -> Option<(String, String)> {
    let (mut depth, mut quote) = (0_u32, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if depth > 0 => quote = Some(c),
            (None, '[' | '(') => depth += 1,
            (None, ']' | ')') => depth = depth.saturating_sub(1),
            (None, '=') if sign == '=' && depth == 0 && is_locator(text.get(..at)?) => {}
            (None, c) if c == sign && depth == 0 => {
                let rest = text.get(at + c.len_utf8()..)?;
                return Some((text.get(..at)?.trim().to_owned(), rest.trim().to_owned()));
            }
            (None, _) => {}
        }
    }
    None
}

/// Returns whether the text ends with the name of a locator, at its begin or after ` >> `.
fn is_locator(text: &str) -> bool {
    let last = text.rsplit(" >> ").next().unwrap_or_default();
    LOCATORS.contains(&last.trim())
}

fn count(text: &str) -> Option<Form> {
    let (before, number) = text.rsplit_once('=')?;
    let number = number.trim().parse().ok()?;
    let (selector, order) = if let Some(selector) = before.strip_suffix('>') {
        (selector, Order::AtLeast)
    } else if let Some(selector) = before.strip_suffix('<') {
        (selector, Order::AtMost)
    } else {
        (before, Order::Equal)
    };
    Some(Form::Count(selector.trim().to_owned(), order, number))
}

#[cfg(test)]
mod tests;
