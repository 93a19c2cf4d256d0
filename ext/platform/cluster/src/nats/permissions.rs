//! Rights of the parties on the server.
//!
//! Two properties of the server decide which rights the parties get:
//!
//! - Its answers go to the subject that a request names for replies, whatever the requester may publish.
//!   Each party can therefore let the JSON of an answer arrive at the others, so every reader checks
//!   form and origin of a message, and announcements of records are hints only. Consumers and direct
//!   reads deliver the bare content of messages, so only the operator has these. Streams listen on
//!   subjects with a token (`tokens.rs`), so a submitter gets no right to read the settings of a
//!   stream that others write.
//! - With `allow_responses`, a party needs no right of its own to send one message in reply to each
//!   request that it received, to the subject that the request names. A party may therefore publish
//!   to none of the subjects to which it subscribes: otherwise it could send itself a request, and
//!   so reply to any subject.

use super::options::Party;
use super::{layout, tokens};
use serde::Serialize;
use serde_json::{Value, json};

/// Rights of one account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Permissions {
    /// Subjects to which it may publish.
    pub publish: Vec<String>,
    /// Subjects to which it may subscribe.
    pub subscribe: Vec<String>,
    /// Whether it may answer requests that it receives.
    pub answers: bool,
}

impl Permissions {
    /// Returns the member `permissions` of a user in the configuration of the server.
    #[must_use]
    pub fn to_config(&self) -> Value {
        let mut config = json!({
            "publish": {"allow": self.publish},
            "subscribe": {"allow": self.subscribe},
        });
        if self.answers {
            config["allow_responses"] = json!({"max": 1, "expires": "1m"});
        }
        config
    }
}

/// Returns the rights that a party needs.
#[must_use]
pub fn permissions(party: &Party) -> Permissions {
    let inbox = format!("{}.>", party.inbox());
    let api = |operation: &str, name: &str| format!("$JS.API.{operation}.{name}");
    match party {
        Party::Operator => Permissions {
            publish: vec![">".to_owned()],
            subscribe: vec![">".to_owned()],
            answers: false,
        },
        Party::Node(node) => Permissions {
            publish: vec![
                // A node writes records and results of all submitters, and replaces lost messages.
                tokens::any("records.*.*"),
                tokens::any("objects.*.result.>"),
                tokens::any(layout::TASK_SUBJECTS),
                tokens::any(&layout::host(node)),
                "events.*.*".to_owned(),
                "secrets.*.*".to_owned(),
                "$JS.API.STREAM.NAMES".to_owned(),
                api("STREAM.INFO", "*"),
                api("STREAM.MSG.GET", "*"),
                api("CONSUMER.NAMES", "*"),
                api("CONSUMER.INFO", "*.*"),
                api("CONSUMER.MSG.NEXT", "*.*"),
                "$JS.ACK.>".to_owned(),
            ],
            subscribe: vec![inbox, tokens::any(layout::TASK_SUBJECTS)],
            answers: false,
        },
        Party::Submitter(name) => {
            let records = layout::records_stream(name);
            let objects = layout::objects_stream(name);
            let tasks = layout::tasks_stream(name);
            let publish = vec![
                tokens::any(&layout::tasks(name)),
                tokens::any(&layout::records(name)),
                tokens::any(&layout::object(name, ">")),
                api("STREAM.INFO", &tasks),
                api("STREAM.INFO", &records),
                api("STREAM.INFO", &objects),
                api("STREAM.MSG.GET", &records),
                api("STREAM.MSG.GET", &objects),
                api("STREAM.MSG.GET", layout::HOSTS),
                api("STREAM.PURGE", &records),
                api("STREAM.PURGE", &objects),
                api("CONSUMER.INFO", &format!("{tasks}.*")),
            ];
            Permissions {
                publish,
                subscribe: vec![
                    inbox,
                    format!("changes.{name}.*"),
                    format!("events.{name}.*"),
                    format!("secrets.{name}.*"),
                ],
                answers: true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{NodeName, SubmitterName};

    /// Returns whether a subject can match both patterns.
    fn overlap(a: &str, b: &str) -> bool {
        let (mut a, mut b) = (a.split('.'), b.split('.'));
        loop {
            match (a.next(), b.next()) {
                (None, None) => return true,
                (Some(">"), Some(_)) | (Some(_), Some(">")) => return true,
                (Some(x), Some(y)) if x == y || x == "*" || y == "*" => {}
                _ => return false,
            }
        }
    }

    fn submitter(name: &str) -> Permissions {
        let party = Party::Submitter(SubmitterName::new(name).unwrap());
        permissions(&party)
    }

    fn node(name: &str) -> Permissions {
        permissions(&Party::Node(NodeName::new(name).unwrap()))
    }

    #[test]
    fn party_that_may_answer_requests_may_publish_to_no_subject_that_it_may_subscribe_to() {
        let shop = submitter("shop");
        assert!(shop.answers && !node("n1").answers);
        for to in &shop.publish {
            for from in &shop.subscribe {
                assert!(!overlap(to, from), "{to} {from}");
            }
        }
        assert!(overlap("a.*.c", "a.b.>") && overlap("a.b", "a.b") && !overlap("a.b", "a"));
    }

    #[test]
    fn submitters_share_only_the_heartbeats() {
        let (shop, blog) = (submitter("shop"), submitter("blog"));
        for mine in shop.publish.iter().chain(&shop.subscribe) {
            for theirs in blog.publish.iter().chain(&blog.subscribe) {
                let is_shared = mine.ends_with(layout::HOSTS) && mine == theirs;
                assert!(is_shared || !overlap(mine, theirs), "{mine} {theirs}");
            }
        }
    }

    /// To manage means to create, change, delete, back up or restore a stream or consumer, or to
    /// read a stream directly.
    #[test]
    fn submitters_and_nodes_may_not_manage_streams_and_a_node_sends_only_its_own_heartbeat() {
        for rights in [submitter("shop"), node("n1")] {
            for forbidden in [
                "$JS.API.STREAM.CREATE.X",
                "$JS.API.STREAM.UPDATE.CODEBOX_T_shop",
                "$JS.API.STREAM.DELETE.CODEBOX_T_shop",
                "$JS.API.STREAM.RESTORE.X",
                "$JS.API.STREAM.SNAPSHOT.CODEBOX_T_shop",
                "$JS.API.STREAM.PURGE.CODEBOX_T_shop",
                "$JS.API.STREAM.MSG.DELETE.CODEBOX_T_shop",
                "$JS.API.CONSUMER.CREATE.CODEBOX_T_shop",
                "$JS.API.CONSUMER.CREATE.CODEBOX_R_shop.x.records.shop.run",
                "$JS.API.CONSUMER.DURABLE.CREATE.CODEBOX_T_shop.x",
                "$JS.API.CONSUMER.DELETE.CODEBOX_T_shop.x",
                "$JS.API.DIRECT.GET.CODEBOX_R_shop",
                "$JS.API.DIRECT.GET.CODEBOX_R_shop.records.shop.run",
                "$SYS.REQ.SERVER.PING",
            ] {
                for pattern in &rights.publish {
                    assert!(!overlap(pattern, forbidden), "{pattern} {forbidden}");
                }
            }
        }
        let own = &node("n1").publish;
        assert!(own.contains(&"store.*.hosts.n1".to_owned()));
        assert!(
            !own.iter()
                .any(|pattern| overlap(pattern, "store.x.hosts.n2"))
        );
    }

    #[test]
    fn submitter_may_read_the_settings_of_its_own_streams_only() {
        let shop = submitter("shop").publish;
        let may_read = |stream: &str| {
            let call = format!("$JS.API.STREAM.INFO.{stream}");
            shop.iter().any(|pattern| overlap(pattern, &call))
        };
        for own in ["CODEBOX_T_shop", "CODEBOX_R_shop", "CODEBOX_O_shop"] {
            assert!(may_read(own), "{own}");
        }
        for other in [
            layout::HOSTS,
            "CODEBOX_T_blog",
            "CODEBOX_R_blog",
            "CODEBOX_O_blog",
        ] {
            assert!(!may_read(other), "{other}");
        }
        for list in ["STREAM.NAMES", "STREAM.LIST", "INFO"] {
            let call = format!("$JS.API.{list}");
            assert!(
                !shop.iter().any(|pattern| overlap(pattern, &call)),
                "{list}"
            );
        }
    }
}
