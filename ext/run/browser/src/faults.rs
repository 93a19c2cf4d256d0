//! Faults of pages, which fail a command although the browser could do all that it asked for: a
//! status from 500, a fatal error of PHP, an exception of a script that nothing catches.
//!
//! An assertion of the caller replaces the rule about the same thing: `status` (also the argument
//! `expect-status` and the member `expectStatus` of a step) that about the status, and also that
//! about PHP if it is from 500; `no-php-errors` that about PHP; `no-errors` that about exceptions.

use super::asserts::{Assertion, Form};
use super::events::cut;
use super::observed::Judged;
use super::page::Page;
use super::step_spec::StepAction;
use super::task::Task;
use super::wire::Failure;

/// Which faults do not fail the command.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Accepted {
    status: bool,
    php: bool,
    exceptions: bool,
}

impl Accepted {
    /// Returns what the assertions of a task accept; `expected` is the status that the step requires.
    fn of(task: &Task, expected: Option<u64>) -> Self {
        let steps = task.steps().iter().filter_map(|step| match &step.act {
            StepAction::Expect(assertion) => Some(assertion),
            _ => None,
        });
        let mut accepted = Self::default();
        if let Some(status) = expected {
            accepted.add(&Form::Status(status));
        }
        // A step checks the status of the page that it finds; only the argument is about all pages.
        let general = steps.filter(|assertion| !matches!(assertion.form, Form::Status(_)));
        for Assertion { form, .. } in task.asserts.iter().chain(general) {
            accepted.add(form);
        }
        accepted
    }

    fn add(&mut self, form: &Form) {
        match form {
            Form::Status(status) => {
                self.status = true;
                self.php |= *status >= 500;
            }
            Form::NoPhpErrors => self.php = true,
            Form::NoErrors => self.exceptions = true,
            _ => {}
        }
    }
}

impl Page<'_> {
    /// Takes the messages of PHP in requests of the page.
    pub(super) fn read_php_errors(&mut self) {
        for error in self.wire.host.php_errors() {
            self.wire.observed.php_error(&error);
        }
    }

    /// Returns the result of a part of the task; fails if a page had a fault meanwhile, which is then
    /// the likely cause of another failure. `expected` is the status that a step requires.
    pub fn judge(
        &mut self,
        done: Result<(), Failure>,
        task: &Task,
        expected: Option<u64>,
    ) -> Result<(), Failure> {
        if done.as_ref().is_err_and(Failure::is_final) {
            return done;
        }
        let accepted = Accepted::of(task, expected);
        match (self.fault(accepted), done) {
            (None, done) => done,
            (Some(what), Ok(())) => Err(Failure::Page { what }),
            (Some(what), Err(failure)) => Err(Failure::Page {
                what: format!("{what}; {failure}"),
            }),
        }
    }

    /// Returns the first fault since the last call that is not accepted.
    fn fault(&mut self, accepted: Accepted) -> Option<String> {
        self.read_php_errors();
        let faults = &mut self.wire.observed.faults;
        let judged = Judged {
            documents: faults.documents.total,
            php: faults.php.total,
            exceptions: faults.exceptions.total,
        };
        let before = std::mem::replace(&mut faults.judged, judged);
        let document = faults.documents.after(before.documents);
        let hint = match document {
            Some((_, status)) => format!(", or set expect-status={status} if it is expected"),
            None => String::new(),
        };
        if let Some(error) = faults.php.after(before.php).filter(|_| !accepted.php) {
            return Some(format!(
                "PHP ended with a fatal error: {error}; correct it{hint}"
            ));
        }
        if let Some((url, status)) = document.filter(|_| !accepted.status) {
            return Some(format!("{url} answered with {status}; correct it{hint}"));
        }
        let thrown = faults.exceptions.after(before.exceptions);
        let thrown = thrown.filter(|_| !accepted.exceptions)?;
        let line = thrown.line.map_or_else(String::new, |n| format!(":{n}"));
        Some(format!(
            "a script of the page threw an exception that nothing caught: {} ({}{line}); correct it, or assert advisory:no-errors if it is expected",
            cut(thrown.text.lines().next().unwrap_or_default(), 500),
            thrown.url
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(forms: &[Form]) -> Accepted {
        let mut accepted = Accepted::default();
        for form in forms {
            accepted.add(form);
        }
        accepted
    }

    #[test]
    fn only_an_assertion_about_the_same_thing_accepts_a_fault_of_a_page() {
        let nothing = Accepted::default();
        assert_eq!(accepted(&[Form::NoConsoleErrors]), nothing);
        assert_eq!(accepted(&[Form::Exists("a".to_owned())]), nothing);
        let status = Accepted {
            status: true,
            ..nothing
        };
        assert_eq!(accepted(&[Form::Status(200)]), status);
        let failing = Accepted {
            php: true,
            ..status
        };
        assert_eq!(accepted(&[Form::Status(503)]), failing);
        assert!(accepted(&[Form::NoPhpErrors]).php);
        assert!(accepted(&[Form::NoErrors]).exceptions);
    }
}
