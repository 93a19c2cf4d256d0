//! One SMTP conversation (RFC 5321) without its socket: takes bytes, returns replies and messages.

/// Size limits of a mail message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Maximum length of a message in bytes; a longer message ends the conversation.
    pub message: u64,
    /// Maximum number of bytes stored of one message; the rest of a longer message is discarded.
    pub stored: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            message: 25 * 1024 * 1024,
            stored: 1024 * 1024,
        }
    }
}

/// Maximum length of a command line in bytes; RFC 5321 requires servers to accept 512, and SMTP
/// extensions require more.
const LINE: usize = 4096;
/// Maximum length of an address in bytes, the limit of RFC 5321 for a path.
const ADDRESS: usize = 256;
/// Maximum number of recipients of one message; RFC 5321 requires servers to accept at least 100.
const RECIPIENTS: usize = 100;
/// Maximum number of commands in one conversation.
const COMMANDS: u32 = 1000;

/// First line that the server sends in every conversation.
pub(super) const GREETING: &[u8] = b"220 codebox ESMTP: mail is captured and goes nowhere\r\n";

/// A mail message with the addresses of its envelope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// Address of `MAIL FROM`; empty for the null sender.
    pub from: String,
    /// Addresses of `RCPT TO`, in order.
    pub to: Vec<String>,
    /// First bytes of the message, dot-stuffing removed, up to the storage limit.
    pub content: Vec<u8>,
    /// Length of the whole message in bytes.
    pub bytes: u64,
}

/// Whether the server continues to read from the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Read,
    Close,
}

/// Position within the message that follows DATA; `\r\n.\r\n` ends the message (RFC 5321,
/// 4.1.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DataPosition {
    LineStart,
    Dot,
    DotReturn,
    Middle,
    Return,
}

enum State {
    Command,
    /// The client is sending its answer to an AUTH challenge; the number says how many more answers
    /// the server will request after this one. Credentials are not stored.
    Credentials(u8),
    Data(DataPosition),
}

/// State of a running conversation.
pub(super) struct Conversation {
    bounds: Bounds,
    state: State,
    line: Vec<u8>,
    commands: u32,
    /// Addresses that MAIL and RCPT have given so far; `None` before MAIL, when RCPT and DATA are
    /// refused.
    envelope: Option<Received>,
}

impl Conversation {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            state: State::Command,
            line: Vec::new(),
            commands: 0,
            envelope: None,
        }
    }

    /// Parses client bytes; appends replies to `out` and passes complete messages to `deliver`.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        deliver: &mut dyn FnMut(Received),
    ) -> Next {
        for byte in bytes {
            let next = match self.state {
                State::Data(position) => self.data(position, *byte, out, deliver),
                State::Command | State::Credentials(_) => self.text(*byte, out),
            };
            if next == Next::Close {
                return next;
            }
        }
        Next::Read
    }

    fn text(&mut self, byte: u8, out: &mut Vec<u8>) -> Next {
        if byte != b'\n' {
            self.line.push(byte);
            if self.line.len() > LINE {
                return refuse(out, "500 the line is too long");
            }
            return Next::Read;
        }
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        self.commands += 1;
        if self.commands > COMMANDS {
            return refuse(out, "421 too many commands");
        }
        if let State::Credentials(more) = self.state {
            match more {
                0 => {
                    self.state = State::Command;
                    reply(out, "235 any credentials are accepted");
                }
                more => {
                    self.state = State::Credentials(more - 1);
                    reply(out, "334 UGFzc3dvcmQ6");
                }
            }
            return Next::Read;
        }
        self.command(line, out)
    }

    fn command(&mut self, line: &str, out: &mut Vec<u8>) -> Next {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb.to_ascii_uppercase().as_str() {
            "EHLO" => {
                self.envelope = None;
                let size = self.bounds.message;
                let text = format!(
                    "250-codebox\r\n250-SIZE {size}\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 AUTH PLAIN LOGIN"
                );
                reply(out, &text);
            }
            "HELO" => {
                self.envelope = None;
                reply(out, "250 codebox");
            }
            "MAIL" => reply(out, self.sender(rest)),
            "RCPT" => reply(out, self.recipient(rest)),
            "DATA" => match &self.envelope {
                Some(envelope) if !envelope.to.is_empty() => {
                    self.state = State::Data(DataPosition::LineStart);
                    reply(out, "354 end with a dot on a line of its own");
                }
                Some(_) | None => reply(out, "503 RCPT comes first"),
            },
            "RSET" => {
                self.envelope = None;
                reply(out, "250 ok");
            }
            "NOOP" => reply(out, "250 ok"),
            "VRFY" => reply(out, "252 addresses are not verified"),
            "AUTH" => self.auth(rest, out),
            "QUIT" => return refuse(out, "221 bye"),
            _ => reply(out, "502 no such command here"),
        }
        Next::Read
    }

    fn sender(&mut self, rest: &str) -> &'static str {
        if self.envelope.is_some() {
            return "503 MAIL was already sent";
        }
        let Some((from, parameters)) = path_of(rest, "FROM:") else {
            return "501 MAIL FROM:<address>";
        };
        let announced = parameters.split_whitespace().find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.eq_ignore_ascii_case("SIZE").then_some(value)
        });
        let size: u64 = announced.map_or(0, |text| text.parse().unwrap_or(u64::MAX));
        if size > self.bounds.message {
            return "552 the message is too large";
        }
        self.envelope = Some(Received {
            from,
            ..Received::default()
        });
        "250 ok"
    }

    fn recipient(&mut self, rest: &str) -> &'static str {
        let Some(envelope) = &mut self.envelope else {
            return "503 MAIL comes first";
        };
        match path_of(rest, "TO:") {
            Some((to, _)) if !to.is_empty() => {
                if envelope.to.len() >= RECIPIENTS {
                    return "452 too many recipients";
                }
                envelope.to.push(to);
                "250 ok"
            }
            Some(_) | None => "501 RCPT TO:<address>",
        }
    }

    fn auth(&mut self, rest: &str, out: &mut Vec<u8>) {
        let mut words = rest.split_whitespace();
        let mechanism = words.next().unwrap_or_default().to_ascii_uppercase();
        let follow = match (mechanism.as_str(), words.next()) {
            ("PLAIN", Some(_)) => None,
            ("PLAIN", None) => Some((0, "334 ")),
            ("LOGIN", Some(_)) => Some((0, "334 UGFzc3dvcmQ6")),
            ("LOGIN", None) => Some((1, "334 VXNlcm5hbWU6")),
            _ => return reply(out, "504 PLAIN or LOGIN"),
        };
        match follow {
            None => reply(out, "235 any credentials are accepted"),
            Some((more, text)) => {
                self.state = State::Credentials(more);
                reply(out, text);
            }
        }
    }

    fn data(
        &mut self,
        position: DataPosition,
        byte: u8,
        out: &mut Vec<u8>,
        deliver: &mut dyn FnMut(Received),
    ) -> Next {
        if (position, byte) == (DataPosition::DotReturn, b'\n') {
            self.state = State::Command;
            deliver(self.envelope.take().unwrap_or_default());
            reply(out, "250 captured");
            return Next::Read;
        }
        if (position, byte) == (DataPosition::LineStart, b'.') {
            self.state = State::Data(DataPosition::Dot);
            return Next::Read;
        }
        if (position, byte) == (DataPosition::Dot, b'\r') {
            self.state = State::Data(DataPosition::DotReturn);
            return Next::Read;
        }
        let stored = self.bounds.stored;
        if let Some(envelope) = &mut self.envelope {
            let mut push = |byte| {
                envelope.bytes += 1;
                if envelope.content.len() < stored {
                    envelope.content.push(byte);
                }
            };
            if position == DataPosition::DotReturn {
                push(b'\r');
            }
            push(byte);
            if envelope.bytes > self.bounds.message {
                return refuse(out, "552 the message is too large");
            }
        }
        self.state = State::Data(match (position, byte) {
            (_, b'\r') => DataPosition::Return,
            (DataPosition::Return, b'\n') => DataPosition::LineStart,
            _ => DataPosition::Middle,
        });
        Next::Read
    }
}

fn reply(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn refuse(out: &mut Vec<u8>, text: &str) -> Next {
    reply(out, text);
    Next::Close
}

/// Returns the address after `FROM:` or `TO:` (the `prefix`), and the parameters that follow it.
fn path_of<'a>(rest: &'a str, prefix: &str) -> Option<(String, &'a str)> {
    let rest = rest.trim_start();
    let head = rest.get(..prefix.len())?;
    if !head.eq_ignore_ascii_case(prefix) {
        return None;
    }
    let path = rest.get(prefix.len()..)?.trim_start();
    let (address, parameters) = match path.strip_prefix('<') {
        Some(path) => path.split_once('>')?,
        None => path.split_once(' ').unwrap_or((path, "")),
    };
    (address.len() <= ADDRESS).then(|| (address.to_owned(), parameters))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Bounds = Bounds {
        message: 64,
        stored: 16,
    };

    /// Feeds `input` to a conversation in pieces of `piece` bytes. Returns reply codes, messages,
    /// and whether the conversation continues.
    fn talk(bounds: Bounds, input: &[u8], piece: usize) -> (Vec<String>, Vec<Received>, Next) {
        let mut conversation = Conversation::new(bounds);
        let (mut out, mut messages) = (Vec::new(), Vec::new());
        let mut next = Next::Read;
        for bytes in input.chunks(piece) {
            next = conversation.feed(bytes, &mut out, &mut |message| messages.push(message));
            if next == Next::Close {
                break;
            }
        }
        let out = String::from_utf8(out).unwrap();
        let codes = out
            .lines()
            .filter(|line| line.as_bytes()[3] == b' ')
            .map(|line| line[..3].to_owned());
        (codes.collect(), messages, next)
    }

    const PLAIN: &[u8] = b"EHLO x\r\nMAIL FROM:<a@x.test> SIZE=9 BODY=8BITMIME\r\nRCPT TO:<b@x.test>\r\nrcpt to: c@x.test\r\nDATA\r\nS: x\r\n\r\n..one\r\n.two\r\n.\r\nQUIT\r\n";

    #[test]
    fn mail_message_and_envelope_are_parsed_for_any_packet_split() {
        for piece in [1, 2, 3, 7, PLAIN.len()] {
            let (codes, messages, next) = talk(Bounds::default(), PLAIN, piece);
            assert_eq!(
                codes,
                ["250", "250", "250", "250", "354", "250", "221"],
                "{piece}"
            );
            assert_eq!(next, Next::Close);
            let [message] = messages.as_slice() else {
                panic!("{messages:?}");
            };
            assert_eq!(message.from, "a@x.test");
            assert_eq!(message.to, ["b@x.test", "c@x.test"]);
            assert_eq!(message.content, b"S: x\r\n\r\n.one\r\ntwo\r\n");
            assert_eq!(message.bytes, 19);
        }
    }

    #[test]
    fn smtp_conversation_accepts_several_messages_and_the_null_sender() {
        let one = b"MAIL FROM:<>\r\nRCPT TO:<b@x.test>\r\nDATA\r\nx\r\n.\r\n";
        let (codes, messages, next) = talk(Bounds::default(), &one.repeat(2), 5);
        assert_eq!(codes.len(), 8);
        assert_eq!((messages.len(), next), (2, Next::Read));
        assert_eq!(messages[0].from, "");
    }

    #[test]
    fn dot_ends_a_mail_message_only_alone_on_a_crlf_line() {
        let input = b"MAIL FROM:<a>\r\nRCPT TO:<b>\r\nDATA\r\nx\n.\n\r.\r\n.\rz\r\n.\r\r\n.\r\n";
        for piece in [1, 4, 100] {
            let (_, messages, _) = talk(Bounds::default(), input, piece);
            assert_eq!(messages.len(), 1, "{piece}");
            assert_eq!(messages[0].content, b"x\n.\n\r.\r\n\rz\r\n\r\r\n");
        }
    }

    #[test]
    fn invalid_or_misplaced_smtp_command_gets_its_reply_code_and_the_connection_stays_open() {
        for (line, code) in [
            ("DATA", "503"),
            ("RCPT TO:<b@x>", "503"),
            ("MAIL <a@x>", "501"),
            ("MAIL FROM:<a@x", "501"),
            ("MAIL FROM:<a@x> SIZE=26214401", "552"),
            ("MAIL FROM:<a@x> SIZE=-1", "552"),
            ("STARTTLS", "502"),
            ("AUTH CRAM-MD5", "504"),
            ("VRFY root", "252"),
            ("", "502"),
        ] {
            let input = format!("{line}\r\n");
            let (codes, messages, next) = talk(Bounds::default(), input.as_bytes(), 9);
            assert_eq!(
                (codes, messages.len()),
                (vec![code.to_owned()], 0),
                "{line}"
            );
            assert_eq!(next, Next::Read);
        }
        let long = format!("MAIL FROM:<{}>\r\n", "a".repeat(257));
        assert_eq!(talk(Bounds::default(), long.as_bytes(), 99).0, ["501"]);
    }

    #[test]
    fn smtp_auth_responses_are_accepted_and_not_executed_as_commands() {
        for (input, codes) in [
            ("AUTH PLAIN AGEAYg==\r\nNOOP\r\n", vec!["235", "250"]),
            ("AUTH PLAIN\r\nQUIT\r\nNOOP\r\n", vec!["334", "235", "250"]),
            (
                "AUTH LOGIN\r\nQUIT\r\nQUIT\r\nNOOP\r\n",
                vec!["334", "334", "235", "250"],
            ),
        ] {
            assert_eq!(talk(Bounds::default(), input.as_bytes(), 3).0, codes);
        }
    }

    #[test]
    fn smtp_server_bounds_line_and_message_length_and_number_of_commands_and_recipients() {
        let close = |input: &[u8]| {
            let (codes, messages, next) = talk(SMALL, input, 4096);
            assert_eq!((messages.len(), next), (0, Next::Close));
            codes.last().cloned().unwrap()
        };
        assert_eq!(close(&vec![b'x'; LINE + 1]), "500");
        assert_eq!(close(&b"NOOP\r\n".repeat(1001)), "421");
        let begin = b"MAIL FROM:<a>\r\nRCPT TO:<b>\r\nDATA\r\n".to_vec();
        assert_eq!(close(&[&begin[..], &[b'x'; 65]].concat()), "552");
        // Control: a message with exactly the maximum length is accepted, and its first bytes are
        // stored.
        let most = [&begin[..], &[b'x'; 62], b"\r\n.\r\n"].concat();
        let (_, messages, _) = talk(SMALL, &most, 4096);
        assert_eq!((messages[0].bytes, messages[0].content.len()), (64, 16));
        let many = [&b"MAIL FROM:<a>\r\n"[..], &b"RCPT TO:<b>\r\n".repeat(101)].concat();
        let (codes, ..) = talk(SMALL, &many, 4096);
        assert_eq!((codes[100].as_str(), codes[101].as_str()), ("250", "452"));
    }
}
