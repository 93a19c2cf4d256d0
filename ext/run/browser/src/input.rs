//! Input events of mouse and keyboard, and the elements at which they are directed.

use super::asserts::{Element, Frame, query};
use super::events::{cut, text};
use super::page::{PAUSE, Page};
use super::step_spec::DropPlace;
use super::wire::{Failure, timeout};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Maximum time to wait until the browser reports a drag. It reports none for elements that a
/// script moves on mouse events.
const DRAG: Duration = Duration::from_millis(300);
/// Maximum length of a field's value that `page.js` returns.
const KEPT: usize = 20_000;
/// Number of mouse movements of a drag.
const MOVES: u32 = 6;

const ALT: u32 = 1;
const CONTROL: u32 = 2;
const META: u32 = 4;
const SHIFT: u32 = 8;
/// Keys that can be held while another key is pressed, with their bit in the keyboard event.
const MODIFIERS: &[(&str, u32)] = &[
    ("Alt", ALT),
    ("Control", CONTROL),
    ("ControlOrMeta", CONTROL),
    ("Meta", META),
    ("Shift", SHIFT),
];

/// Keys that a step can name: name, `code` and key code of the keyboard event, and the text that
/// the key types.
const KEYS: &[(&str, &str, u32, &str)] = &[
    ("Enter", "Enter", 13, "\r"),
    ("Tab", "Tab", 9, ""),
    ("Escape", "Escape", 27, ""),
    ("Backspace", "Backspace", 8, ""),
    ("Delete", "Delete", 46, ""),
    ("ArrowUp", "ArrowUp", 38, ""),
    ("ArrowDown", "ArrowDown", 40, ""),
    ("ArrowLeft", "ArrowLeft", 37, ""),
    ("ArrowRight", "ArrowRight", 39, ""),
    ("Home", "Home", 36, ""),
    ("End", "End", 35, ""),
    ("PageUp", "PageUp", 33, ""),
    ("PageDown", "PageDown", 34, ""),
    ("Space", "Space", 32, " "),
];

/// What a focused element selects of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selects {
    Nothing,
    Everything,
}

/// Types of inputs whose value a person picks; text that is typed does not reach it.
const PICKERS: &[&str] = &[
    "date",
    "datetime-local",
    "month",
    "week",
    "time",
    "color",
    "range",
];
/// Types of inputs that have no text.
const TEXTLESS: &[&str] = &[
    "checkbox", "radio", "button", "submit", "reset", "image", "file", "hidden",
];

/// How a step uses an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It is hit by the mouse.
    Mouse,
    /// Its text is replaced.
    Text,
    /// Keys are pressed in it.
    Keys,
    /// One of its options is chosen.
    Choice,
}

impl Use {
    /// Returns why an element cannot be used so, and whether that cannot change; `found` is what
    /// `page.js` returned.
    fn obstacle(self, found: &Value) -> Option<(String, bool)> {
        let is = |name: &str| found.get(name).and_then(Value::as_bool) == Some(true);
        let waits = |why: String| Some((why, false));
        let tag = || cut(text(found, "/tag"), 300);
        let control = text(found, "/control");
        let takes_text =
            !TEXTLESS.contains(&control) && found.get("value").is_some() || control == "editable";
        match self {
            Self::Text if !takes_text => Some((
                format!(
                    "is {}, which takes no text; use check, select or click",
                    tag()
                ),
                true,
            )),
            Self::Choice if control != "select" => Some((
                format!("is {}, which has no options; use click or fill", tag()),
                true,
            )),
            _ if is("disabled") => waits(format!("is disabled; it is {}", tag())),
            Self::Text | Self::Keys if is("readOnly") => {
                let kept = found.get("value").and_then(Value::as_str);
                let kept = kept
                    .filter(|_| control != "password")
                    .map_or_else(String::new, |kept| {
                        format!(" and keeps {:?}", cut(kept, 200))
                    });
                waits(format!("is read-only{kept}; it is {}", tag()))
            }
            Self::Mouse if found.get("x").is_none() => waits("has no position".to_owned()),
            Self::Mouse if is("covered") => {
                let by = cut(text(found, "/coveredBy"), 300);
                waits(format!("is covered by {by} at the point of the click"))
            }
            _ => None,
        }
    }
}

/// Returns how the text that a field keeps differs from the one that was asked for; `None` if it does
/// not. A password is not shown.
fn refusal(control: &str, asked: &str, kept: &str) -> Option<String> {
    let mut wanted = asked.replace("\r\n", "\n").replace('\r', "\n");
    if control != "textarea" {
        wanted.retain(|sign| sign != '\n');
    }
    // The browser removes spaces around addresses.
    if matches!(control, "email" | "url") {
        wanted = wanted.trim().to_owned();
    }
    // `page.js` returns at most this many UTF-16 units of a value.
    let same = kept == wanted || kept.len() >= KEPT && wanted.starts_with(kept);
    if same {
        return None;
    }
    if control == "password" {
        return Some(format!(
            "keeps {} characters instead of {}",
            kept.chars().count(),
            wanted.chars().count()
        ));
    }
    Some(format!(
        "keeps {:?} instead of {:?}",
        cut(kept, 200),
        cut(asked, 200)
    ))
}

/// Splits a key from the modifiers before it.
fn modified(keys: &str) -> (u32, &str) {
    let (mut held, mut key) = (0, keys);
    while let Some((name, rest)) = key.split_once('+') {
        match MODIFIERS.iter().find(|row| row.0 == name) {
            Some((_, bit)) if !rest.is_empty() => (held, key) = (held | bit, rest),
            _ => break,
        }
    }
    (held, key)
}

impl Page<'_> {
    /// Makes `page.js` act on an element; returns what it found.
    pub(super) fn act(&mut self, element: &Element, what: Value) -> Result<Value, Failure> {
        let selector = &element.selector;
        let mut asked = element.query();
        if let (Some(asked), Value::Object(what)) = (asked.as_object_mut(), what) {
            asked.extend(what);
        }
        // The deadline of a step may have passed; the query has one of its own, so that the step can
        // still say why the element was not usable.
        let until = self.until();
        let found = self.query_document(&asked, until)?;
        match found.get("error").and_then(Value::as_str) {
            Some(error) => Err(Failure::step(format!("{selector}: {}", cut(error, 300)))),
            None => Ok(found),
        }
    }

    /// Waits until an element can be used as a step does; returns what `page.js` found. If it cannot
    /// until `until`, the error says why.
    pub(super) fn usable(
        &mut self,
        element: &Element,
        how: Use,
        until: Instant,
    ) -> Result<Value, Failure> {
        loop {
            self.wait_found(element, true, until)?;
            let found = self.act(element, json!({"act": "point"}))?;
            match how.obstacle(&found) {
                None => return Ok(found),
                Some((why, lasting)) if lasting || Instant::now() >= until => {
                    return Err(Failure::step(format!("{} {why}", element.selector)));
                }
                Some(_) => self.pause_until(until.min(Instant::now() + PAUSE))?,
            }
        }
    }

    /// Waits until an element can be clicked, and returns the coordinates to click at.
    pub(super) fn point(
        &mut self,
        element: &Element,
        until: Instant,
    ) -> Result<(f64, f64), Failure> {
        let found = self.usable(element, Use::Mouse, until)?;
        let number = |name: &str| found.get(name).and_then(Value::as_f64).unwrap_or_default();
        Ok((number("x"), number("y")))
    }

    /// Replaces the text of a field. Fails if the field keeps another text.
    pub(super) fn fill(
        &mut self,
        element: &Element,
        value: &str,
        until: Instant,
    ) -> Result<(), Failure> {
        let before = self.usable(element, Use::Text, until)?;
        let control = text(&before, "/control");
        let found = if PICKERS.contains(&control) {
            self.act(element, json!({"act": "set", "value": value}))?
        } else {
            self.focus(element, Selects::Everything, until)?;
            if value.is_empty() {
                self.press("Delete", until)?;
            } else {
                let text = json!({"text": value});
                self.wire.ask("Input.insertText", text, until)?;
            }
            self.act(element, json!({"act": "point"}))?
        };
        // An editable element has no value, and a field that the page has removed neither.
        let kept = found.get("value").and_then(Value::as_str);
        match kept.and_then(|kept| refusal(control, value, kept)) {
            None => Ok(()),
            Some(why) => {
                let limit = found.get("maxLength").and_then(Value::as_u64);
                let limit =
                    limit.map_or_else(String::new, |most| format!(" (its maxlength is {most})"));
                let tag = cut(text(&found, "/tag"), 300);
                Err(Failure::step(format!(
                    "{} {why}{limit}; it is {tag}",
                    element.selector
                )))
            }
        }
    }

    /// Clicks a check box or radio button that has not the wanted state. Fails if it keeps the other.
    pub(super) fn set_checked(
        &mut self,
        element: &Element,
        on: bool,
        until: Instant,
    ) -> Result<(), Failure> {
        let is = |found: &Value| found.get("checked").and_then(Value::as_bool);
        self.wait_found(element, true, until)?;
        if is(&self.act(element, json!({"act": "point"}))?) == Some(on) {
            return Ok(());
        }
        let at = self.point(element, until)?;
        self.click(at, until)?;
        loop {
            // The click can remove the element or leave the page; then there is no state to check.
            let state = match self.act(element, json!({"act": "point"})) {
                Ok(found) => is(&found),
                Err(failure) if failure.is_final() => return Err(failure),
                Err(_) => None,
            };
            if state.is_none_or(|state| state == on) {
                return Ok(());
            }
            if Instant::now() >= until {
                let stayed = if on { "unchecked" } else { "checked" };
                let what = format!("{} stayed {stayed} after a click", element.selector);
                return Err(Failure::step(what));
            }
            self.pause_until(until.min(Instant::now() + PAUSE))?;
        }
    }

    pub(super) fn click(&mut self, (x, y): (f64, f64), until: Instant) -> Result<(), Failure> {
        self.mouse("mouseMoved", x, y, 0, until)?;
        self.mouse("mousePressed", x, y, 1, until)?;
        self.mouse("mouseReleased", x, y, 1, until)
    }

    pub(super) fn mouse(
        &mut self,
        kind: &str,
        x: f64,
        y: f64,
        clicks: u32,
        until: Instant,
    ) -> Result<(), Failure> {
        let button = if clicks > 0 { "left" } else { "none" };
        let params = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": clicks});
        self.wire
            .ask("Input.dispatchMouseEvent", params, until)
            .map(drop)
    }

    pub(super) fn focus(
        &mut self,
        element: &Element,
        selects: Selects,
        until: Instant,
    ) -> Result<(), Failure> {
        self.wait_found(element, true, until)?;
        let all = selects == Selects::Everything;
        let found = self.act(element, json!({"act": "focus", "selectAll": all}))?;
        if found.get("focused").and_then(Value::as_bool) == Some(true) {
            Ok(())
        } else {
            Err(Failure::step(format!(
                "{} cannot be focused",
                element.selector
            )))
        }
    }

    /// Presses a key; names of modifiers before it are held, e.g. `Control+a`.
    pub(super) fn press(&mut self, keys: &str, until: Instant) -> Result<(), Failure> {
        let (modifiers, key) = modified(keys);
        let (name, code, number, text) = match KEYS.iter().find(|row| row.0 == key) {
            Some((name, code, number, text)) => (*name, *code, *number, *text),
            None if key.chars().count() == 1 => (key, "", 0, key),
            None => {
                let names: Vec<&str> = KEYS.iter().map(|row| row.0).collect();
                return Err(Failure::step(format!(
                    "unknown key {:?}; use a single character or one of {}",
                    cut(key, 40),
                    names.join(", ")
                )));
            }
        };
        let name = if name == "Space" { " " } else { name };
        // A letter with Control or Meta is a command of the browser or the page, not text.
        let text = if modifiers & (CONTROL | META) == 0 {
            text
        } else {
            ""
        };
        let number = match name.bytes().next() {
            Some(letter) if number == 0 && modifiers != 0 => u32::from(letter.to_ascii_uppercase()),
            _ => number,
        };
        let base = json!({"key": name, "code": code, "windowsVirtualKeyCode": number,
            "modifiers": modifiers});
        let with = |kind: &str, text: &str| {
            let mut params = base.clone();
            params["type"] = json!(kind);
            if !text.is_empty() {
                params["text"] = json!(text);
            }
            params
        };
        let down = if text.is_empty() {
            "rawKeyDown"
        } else {
            "keyDown"
        };
        self.wire
            .ask("Input.dispatchKeyEvent", with(down, text), until)?;
        self.wire
            .ask("Input.dispatchKeyEvent", with("keyUp", ""), until)
            .map(drop)
    }

    /// Drags an element with the mouse and drops it.
    ///
    /// The browser cannot perform a drag of HTML's drag and drop without a window system, so it
    /// only reports the drag, and this function sends the drag events. An element that a script
    /// moves on mouse events gets only mouse events.
    pub(super) fn drag(
        &mut self,
        element: &Element,
        to: &DropPlace,
        until: Instant,
    ) -> Result<(), Failure> {
        let intercept = |enabled: bool| json!({"enabled": enabled});
        self.wire
            .ask("Input.setInterceptDrags", intercept(true), until)?;
        let done = self.drag_intercepted(element, to, until);
        self.wire
            .ask("Input.setInterceptDrags", intercept(false), until)?;
        done
    }

    fn drag_intercepted(
        &mut self,
        element: &Element,
        to: &DropPlace,
        until: Instant,
    ) -> Result<(), Failure> {
        if let DropPlace::Element(target) = to {
            self.wait_found(target, true, until)?;
        }
        let (x, y) = self.point(element, until)?;
        self.wire.observed.tab.dragged = None;
        self.mouse("mouseMoved", x, y, 0, until)?;
        self.held("mousePressed", x, y, until)?;
        // The first movements make the browser or the script notice the drag.
        self.held("mouseMoved", x + 4.0, y + 4.0, until)?;
        let (end_x, end_y) = match to {
            DropPlace::By(dx, dy) => (x + dx, y + dy),
            DropPlace::Element(target) => self.drop_point(target)?,
        };
        for step in 1..=MOVES {
            let part = f64::from(step) / f64::from(MOVES);
            let (at_x, at_y) = (x + (end_x - x) * part, y + (end_y - y) * part);
            self.held("mouseMoved", at_x, at_y, until)?;
        }
        let noticed = until.min(Instant::now() + DRAG);
        self.wire.wait(noticed, |seen| seen.tab.dragged.is_some())?;
        if let Some(data) = self.wire.observed.tab.dragged.take() {
            for kind in ["dragEnter", "dragOver", "drop"] {
                let event = json!({"type": kind, "x": end_x, "y": end_y, "data": data});
                self.wire.ask("Input.dispatchDragEvent", event, until)?;
            }
        }
        self.held("mouseReleased", end_x, end_y, until)
    }

    /// Returns the middle of the element on which something is dropped. It may be covered by what
    /// is dragged, so this does not check what is at the point.
    fn drop_point(&mut self, target: &Element) -> Result<(f64, f64), Failure> {
        let found = self.act(target, json!({"act": "point"}))?;
        let number = |name: &str| found.get(name).and_then(Value::as_f64);
        number("x")
            .zip(number("y"))
            .ok_or_else(|| Failure::step(format!("{} is not visible", target.selector)))
    }

    /// Sends a mouse event with the left button held.
    fn held(&mut self, kind: &str, x: f64, y: f64, until: Instant) -> Result<(), Failure> {
        let params = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1,
            "clickCount": 1});
        self.wire
            .ask("Input.dispatchMouseEvent", params, until)
            .map(drop)
    }

    /// Returns left, top, width and height of an element on the page, in CSS pixels.
    pub(super) fn element_box(
        &mut self,
        element: &Element,
        until: Instant,
    ) -> Result<[f64; 4], Failure> {
        self.wait_found(element, true, until)?;
        let found = self.act(element, json!({"act": "point"}))?;
        rectangle(&found).ok_or_else(|| {
            Failure::step(format!(
                "{} is not visible, so it has no position",
                element.selector
            ))
        })
    }

    /// Returns left, top, width and height of a frame's element on the page.
    pub(super) fn frame_box(&mut self, frame: &Frame, until: Instant) -> Result<[f64; 4], Failure> {
        let began = Instant::now();
        let mut asked = query(frame, None, None);
        asked["frameBox"] = json!(true);
        loop {
            let found = self.query_document(&asked, self.until())?;
            if let Some(found) = rectangle(&found) {
                return Ok(found);
            }
            if Instant::now() >= until {
                return Err(timeout("waiting for the frame", began));
            }
            self.pause_until(until.min(Instant::now() + PAUSE))?;
        }
    }
}

/// Reads the member `box` of what `page.js` returns.
fn rectangle(found: &Value) -> Option<[f64; 4]> {
    let rows = found.get("box")?.as_array()?;
    match rows.as_slice() {
        [x, y, width, height] => {
            Some([x.as_f64()?, y.as_f64()?, width.as_f64()?, height.as_f64()?])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifier_names_before_a_key_are_parsed_as_its_modifiers() {
        for (keys, wanted) in [
            ("Control+a", (CONTROL, "a")),
            ("Control+Shift+Enter", (CONTROL | SHIFT, "Enter")),
            ("+", (0, "+")),
            ("Control++", (CONTROL, "+")),
            ("a", (0, "a")),
            ("Hyper+a", (0, "Hyper+a")),
        ] {
            assert_eq!(modified(keys), wanted, "{keys}");
        }
    }

    #[test]
    fn text_that_a_field_keeps_is_compared_as_the_browser_normalises_it() {
        for (control, asked, kept) in [
            ("text", "a", "a"),
            ("text", "a\nb", "ab"),
            ("textarea", "a\r\nb", "a\nb"),
            ("email", " a@b.c ", "a@b.c"),
        ] {
            assert_eq!(refusal(control, asked, kept), None, "{control} {asked:?}");
        }
        for (control, asked, kept, said) in [
            ("number", "abc", "", "keeps \"\" instead of \"abc\""),
            (
                "text",
                "abcdef",
                "abc",
                "keeps \"abc\" instead of \"abcdef\"",
            ),
            ("text", " a ", "a", "keeps \"a\" instead of \" a \""),
            (
                "password",
                "secret",
                "sec",
                "keeps 3 characters instead of 6",
            ),
        ] {
            assert_eq!(refusal(control, asked, kept).as_deref(), Some(said));
        }
    }

    #[test]
    fn obstacle_names_what_makes_an_element_unusable_for_a_step_and_only_for_that_step() {
        let input = |more: Value| {
            let mut found =
                json!({"x": 1.0, "y": 1.0, "tag": "<input>", "control": "text", "value": "old"});
            if let (Some(found), Value::Object(more)) = (found.as_object_mut(), more) {
                found.extend(more);
            }
            found
        };
        let plain = input(json!({}));
        for how in [Use::Mouse, Use::Text, Use::Keys] {
            assert_eq!(how.obstacle(&plain), None, "{how:?}");
        }
        let covered = input(json!({"covered": true, "coveredBy": "<div id=\"a\">"}));
        assert_eq!(Use::Text.obstacle(&covered), None);
        let (why, lasting) = Use::Mouse.obstacle(&covered).unwrap();
        assert!(
            why.contains("covered by <div id=\"a\">") && !lasting,
            "{why}"
        );
        let read_only = input(json!({"readOnly": true}));
        assert_eq!(Use::Mouse.obstacle(&read_only), None);
        let (why, lasting) = Use::Text.obstacle(&read_only).unwrap();
        assert!(
            why.contains("read-only and keeps \"old\"") && !lasting,
            "{why}"
        );
        let disabled = input(json!({"disabled": true}));
        for how in [Use::Mouse, Use::Text, Use::Keys] {
            assert!(how.obstacle(&disabled).unwrap().0.contains("is disabled"));
        }
        let (why, lasting) = Use::Text
            .obstacle(&input(json!({"control": "checkbox"})))
            .unwrap();
        assert!(why.contains("takes no text") && lasting, "{why}");
        let (why, lasting) = Use::Choice.obstacle(&plain).unwrap();
        assert!(why.contains("has no options") && lasting, "{why}");
    }
}
