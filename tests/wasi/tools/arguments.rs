//! Reads the arguments of a call: one JSON object with text members, on standard input.

use std::io::Read;

/// Members of the object, in order.
pub struct Arguments(Vec<(String, String)>);

impl Arguments {
    /// Reads standard input; the error is a sentence for the caller.
    pub fn read() -> Result<Self, String> {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|_| "the arguments are not UTF-8".to_string())?;
        let mut parser = Parser { rest: text.trim() };
        let arguments = parser.object()?;
        if parser.rest.trim().is_empty() {
            Ok(Arguments(arguments))
        } else {
            Err("something follows the arguments".to_string())
        }
    }

    /// Returns the value of a member.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn take(&mut self, wanted: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn object(&mut self) -> Result<Vec<(String, String)>, String> {
        let mut members = Vec::new();
        if !self.take('{') {
            return Err("the arguments are not a JSON object".to_string());
        }
        if self.take('}') {
            return Ok(members);
        }
        loop {
            let name = self.text()?;
            if !self.take(':') {
                return Err(format!("the argument {:?} has no value", name));
            }
            let value = self.text()?;
            members.push((name, value));
            if self.take('}') {
                return Ok(members);
            }
            if !self.take(',') {
                return Err("the arguments are not separated by commas".to_string());
            }
        }
    }

    fn text(&mut self) -> Result<String, String> {
        if !self.take('"') {
            return Err("names and values of the arguments must be texts".to_string());
        }
        let mut text = String::new();
        let mut characters = self.rest.chars();
        loop {
            match characters.next() {
                Some('"') => break,
                Some('\\') => match characters.next() {
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    Some('b') => text.push('\u{8}'),
                    Some('f') => text.push('\u{c}'),
                    Some('u') => {
                        let digits: String = characters.by_ref().take(4).collect();
                        let code = u32::from_str_radix(&digits, 16).ok();
                        // A surrogate is not a `char` and becomes U+FFFD; paths rarely need one.
                        text.push(code.and_then(char::from_u32).unwrap_or('\u{fffd}'));
                    }
                    Some(other) => text.push(other),
                    None => return Err("an argument does not end".to_string()),
                },
                Some(other) => text.push(other),
                None => return Err("an argument does not end".to_string()),
            }
        }
        self.rest = characters.as_str();
        Ok(text)
    }
}
