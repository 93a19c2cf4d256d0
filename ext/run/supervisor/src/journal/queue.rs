//! Queue from the control thread, which receives requests of clients, to the thread that owns the
//! guest.
//!
//! Requests are handled in the order of arrival. Program output waits in the same queue on its way
//! to the journal. The queue has a maximum size: a producer of output waits for a permit, i.e. for
//! free space, so that no client can exhaust the supervisor's memory or delay the owner thread.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, ExecutionId, LiveExec, LiveRequest, OutputStream,
};
use wp_codebox_runtime::ExecutionEnd;

/// Number of waiting items from which on further requests are refused; also the maximum number of
/// waiting signals.
const WAITING: usize = 256;
/// Maximum number of bytes of program output in the queue.
const OUTPUT: usize = 4 * 1024 * 1024;
/// Number of bytes that are added to the length of each chunk of output when the queue's size is
/// counted, so that a client cannot fill the memory with many small chunks.
const PIECE: usize = 256;

/// Whether the run holds its guest, i.e. keeps it open for requests of clients after its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldMode {
    Guest,
    Nothing,
}

/// Item of the queue.
#[derive(Debug)]
pub(crate) enum QueuedRequest {
    /// A client's request that has a single reply.
    Call {
        actor: String,
        request: Box<LiveRequest>,
        answer: oneshot::Sender<Result<Value, ErrorBody>>,
    },
    /// A client's request to start a program.
    Launch {
        actor: String,
        exec: LiveExec,
        answer: oneshot::Sender<Result<Started, ErrorBody>>,
    },
    /// A client's request to send a signal to a program.
    Signal { id: ExecutionId, signal: i32 },
    /// Request to kill a program.
    Stop { id: ExecutionId },
    /// Output of a client's program, redacted, on its way to the journal.
    Output {
        id: ExecutionId,
        stream: OutputStream,
        bytes: Vec<u8>,
        /// Reserved space in the queue; released when the bytes are written.
        #[allow(dead_code, reason = "it is held, and dropped with the bytes")]
        permit: OwnedSemaphorePermit,
    },
    /// No more output of the program will be queued.
    Drained { id: ExecutionId },
}

/// What the control thread needs to connect a client with its program.
#[derive(Debug)]
pub(crate) struct Started {
    pub id: ExecutionId,
    pub streams: Streams,
    pub ended: oneshot::Receiver<ExecutionEnd>,
}

/// The supervisor's ends of a program's standard streams, all non-blocking.
#[derive(Debug)]
pub(crate) enum Streams {
    Terminal {
        master: OwnedFd,
    },
    Pipes {
        stdin: OwnedFd,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
}

#[derive(Debug)]
struct Inner {
    requests: VecDeque<QueuedRequest>,
    /// Error with which [`RequestQueue::put`] fails; set when the queue is closed.
    over: Option<ErrorBody>,
    status: Value,
}

impl Inner {
    fn signals(&self) -> usize {
        let signals = self
            .requests
            .iter()
            .filter(|a| matches!(a, QueuedRequest::Signal { .. }));
        signals.count()
    }
}

/// Queue of requests of clients, in order of arrival. It is closed from the beginning if the run is
/// not held, i.e. not kept open for clients.
#[derive(Debug)]
pub(crate) struct RequestQueue {
    inner: Mutex<Inner>,
    wake: OwnedFd,
    permit: Arc<Semaphore>,
    /// Sequence number of the last event in the journal, for followers of the journal.
    tail: watch::Sender<u64>,
    /// Whether the journal is complete, for followers of the journal.
    done: watch::Sender<bool>,
    followers: AtomicUsize,
}

impl RequestQueue {
    pub(crate) fn new(keeps: HoldMode) -> io::Result<Self> {
        let over = match keeps {
            HoldMode::Guest => None,
            HoldMode::Nothing => Some(
                ErrorBody::new(
                    ErrorCode::SandboxNotHeld,
                    "this run does not keep its sandbox open for clients: it accepts only cancel requests and event streams",
                )
                .hint("start the run with --hold"),
            ),
        };
        Ok(Self {
            inner: Mutex::new(Inner {
                requests: VecDeque::new(),
                over,
                status: json!({}),
            }),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            permit: Arc::new(Semaphore::new(OUTPUT)),
            tail: watch::Sender::new(0),
            done: watch::Sender::new(false),
            followers: AtomicUsize::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item; fails if the queue is full or closed.
    pub(crate) fn put(&self, queued: QueuedRequest) -> Result<(), ErrorBody> {
        let mut inner = self.lock();
        if let Some(over) = &inner.over {
            return Err(over.clone());
        }
        // A request is refused if too many items of any kind wait, a signal if too many signals
        // wait. Other items are always accepted: permits limit the output, and each program ends
        // only once.
        let waiting = match queued {
            QueuedRequest::Call { .. } | QueuedRequest::Launch { .. } => inner.requests.len(),
            QueuedRequest::Signal { .. } => inner.signals(),
            QueuedRequest::Stop { .. }
            | QueuedRequest::Output { .. }
            | QueuedRequest::Drained { .. } => 0,
        };
        if waiting >= WAITING {
            return Err(ErrorBody::new(
                ErrorCode::Busy,
                format!("{WAITING} requests already wait for this sandbox; try again later"),
            ));
        }
        inner.requests.push_back(queued);
        drop(inner);
        self.ring();
        Ok(())
    }

    fn ring(&self) {
        // Writing fails with EAGAIN if the event counter is full. A full counter is readable, so
        // the waiting thread wakes all the same.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Returns the event counter (eventfd) that is readable while the queue has items.
    pub(crate) fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Removes and returns the oldest item.
    pub(crate) fn take(&self) -> Option<QueuedRequest> {
        let mut sink = [0; 8];
        let mut inner = self.lock();
        let queued = inner.requests.pop_front();
        if queued.is_none() {
            let _ = rustix::io::read(&self.wake, &mut sink);
        }
        queued
    }

    /// Removes and returns a waiting request to extend the sandbox's lifetime, from any position in
    /// the queue.
    pub(crate) fn take_extension(&self) -> Option<QueuedRequest> {
        let mut inner = self.lock();
        let at = inner.requests.iter().position(|queued| {
            matches!(queued, QueuedRequest::Call { request, .. } if matches!(**request, LiveRequest::ExtendTtl { .. }))
        })?;
        inner.requests.remove(at)
    }

    /// Removes and returns all program output, from any position in the queue. The order of output
    /// relative to other items does not matter.
    pub(crate) fn take_output(&self) -> Vec<(ExecutionId, OutputStream, Vec<u8>)> {
        let mut inner = self.lock();
        if !inner
            .requests
            .iter()
            .any(|queued| matches!(queued, QueuedRequest::Output { .. }))
        {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut left = VecDeque::new();
        for queued in std::mem::take(&mut inner.requests) {
            match queued {
                QueuedRequest::Output {
                    id, stream, bytes, ..
                } => found.push((id, stream, bytes)),
                other => left.push_back(other),
            }
        }
        inner.requests = left;
        found
    }

    /// Waits until the queue has space for this number of output bytes, and reserves it; `None` if
    /// the queue was closed.
    pub(crate) async fn permit(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let wanted = u32::try_from((bytes + PIECE).min(OUTPUT)).unwrap_or(u32::MAX);
        Arc::clone(&self.permit)
            .acquire_many_owned(wanted)
            .await
            .ok()
    }

    /// Closes the queue; clients that wait for a reply get the error.
    pub(crate) fn close(&self, why: &ErrorBody) {
        let mut inner = self.lock();
        inner.over.get_or_insert_with(|| why.clone());
        let waiting = std::mem::take(&mut inner.requests);
        let why = inner.over.clone().unwrap_or_else(|| why.clone());
        drop(inner);
        for queued in waiting {
            match queued {
                QueuedRequest::Call { answer, .. } => {
                    let _ = answer.send(Err(why.clone()));
                }
                QueuedRequest::Launch { answer, .. } => {
                    let _ = answer.send(Err(why.clone()));
                }
                QueuedRequest::Signal { .. }
                | QueuedRequest::Stop { .. }
                | QueuedRequest::Output { .. }
                | QueuedRequest::Drained { .. } => {}
            }
        }
        self.ring();
    }

    /// Returns the status of the sandbox without waiting for the thread that owns the guest, which
    /// may be busy.
    pub(crate) fn status(&self) -> Result<Value, ErrorBody> {
        let inner = self.lock();
        match &inner.over {
            Some(over) if inner.status.get("id").is_none() => Err(over.clone()),
            Some(_) | None => Ok(inner.status.clone()),
        }
    }

    pub(crate) fn show(&self, status: Value) {
        self.lock().status = status;
    }

    /// Tells the followers of the journal that it has a new event; `seq` is the event's number.
    pub(crate) fn journalled(&self, seq: u64) {
        self.tail.send_replace(seq);
    }

    /// Tells the followers of the journal that it is complete; waits until no follower is left, up
    /// to three seconds.
    pub(crate) fn finish(&self) {
        self.done.send_replace(true);
        for _ in 0..300 {
            if self.followers.load(Ordering::SeqCst) == 0 {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    pub(crate) fn follow(&self) -> Follower<'_> {
        self.followers.fetch_add(1, Ordering::SeqCst);
        Follower {
            queue: self,
            tail: self.tail.subscribe(),
            done: self.done.subscribe(),
        }
    }
}

/// A client connection that follows the journal: it waits for new events.
pub(crate) struct Follower<'a> {
    queue: &'a RequestQueue,
    tail: watch::Receiver<u64>,
    done: watch::Receiver<bool>,
}

impl Follower<'_> {
    /// Waits until the journal has an event after `seen`; returns false if no more events will
    /// come.
    pub(crate) async fn more_than(&mut self, seen: u64) -> bool {
        if *self.tail.borrow() > seen {
            return true;
        }
        if *self.done.borrow() {
            return false;
        }
        let (tail, done) = (&mut self.tail, &mut self.done);
        tokio::select! {
            grown = tail.wait_for(|last| *last > seen) => return grown.is_ok(),
            _ = done.wait_for(|done| *done) => {}
        }
        *self.tail.borrow() > seen
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        self.queue.followers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> (QueuedRequest, oneshot::Receiver<Result<Value, ErrorBody>>) {
        let (answer, receiver) = oneshot::channel();
        let queued = QueuedRequest::Call {
            actor: "a".to_owned(),
            request: Box::new(LiveRequest::Reset {}),
            answer,
        };
        (queued, receiver)
    }

    #[test]
    fn request_queue_rejects_requests_if_the_hold_mode_is_nothing() {
        let queue = RequestQueue::new(HoldMode::Nothing).unwrap();
        let refused = queue.put(call().0).unwrap_err();
        assert_eq!(refused.code, ErrorCode::SandboxNotHeld);
        assert!(queue.take().is_none());
        let open = RequestQueue::new(HoldMode::Guest).unwrap();
        open.put(call().0).unwrap();
        assert!(matches!(open.take(), Some(QueuedRequest::Call { .. })));
    }

    #[test]
    fn waiting_requests_fail_at_close_and_full_queue_rejects_more() {
        let queue = RequestQueue::new(HoldMode::Guest).unwrap();
        let mut waiting = Vec::new();
        for _ in 0..WAITING {
            let (queued, answer) = call();
            queue.put(queued).unwrap();
            waiting.push(answer);
        }
        assert_eq!(queue.put(call().0).unwrap_err().code, ErrorCode::Busy);
        let why = ErrorBody::new(ErrorCode::SandboxNotHeld, "it ended");
        queue.close(&why);
        for mut answer in waiting {
            assert_eq!(answer.try_recv().unwrap().unwrap_err().message, "it ended");
        }
        assert_eq!(queue.put(call().0).unwrap_err().message, "it ended");
    }

    #[test]
    fn lifetime_extension_request_can_be_taken_before_earlier_queued_requests() {
        let queue = RequestQueue::new(HoldMode::Guest).unwrap();
        let (mut queued, mut waiting) = (call(), Vec::new());
        queue.put(queued.0).unwrap();
        waiting.push(queued.1);
        queued = call();
        let QueuedRequest::Call { actor, answer, .. } = queued.0 else {
            return;
        };
        let request = Box::new(LiveRequest::ExtendTtl { ttl_ms: 7 });
        queue
            .put(QueuedRequest::Call {
                actor,
                request,
                answer,
            })
            .unwrap();
        let found = queue.take_extension();
        assert!(
            matches!(found, Some(QueuedRequest::Call { request, .. }) if *request == LiveRequest::ExtendTtl { ttl_ms: 7 })
        );
        assert!(queue.take_extension().is_none());
        assert!(matches!(queue.take(), Some(QueuedRequest::Call { .. })));
        assert!(queue.take().is_none());
    }

    #[tokio::test]
    async fn queued_program_output_is_limited_in_bytes_and_can_be_taken_before_queued_requests() {
        let queue = RequestQueue::new(HoldMode::Guest).unwrap();
        let id = ExecutionId::new("exec-1").unwrap();
        queue.put(call().0).unwrap();
        let permit = queue.permit(OUTPUT * 2).await.unwrap();
        queue
            .put(QueuedRequest::Output {
                id: id.clone(),
                stream: OutputStream::Stdout,
                bytes: b"x".to_vec(),
                permit,
            })
            .unwrap();
        let soon = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, queue.permit(1)).await.is_err());
        assert_eq!(
            queue.take_output(),
            [(id, OutputStream::Stdout, b"x".to_vec())]
        );
        assert!(tokio::time::timeout(soon, queue.permit(1)).await.is_ok());
        assert!(matches!(queue.take(), Some(QueuedRequest::Call { .. })));
    }

    #[tokio::test]
    async fn number_of_queued_output_chunks_and_signals_is_limited() {
        let queue = RequestQueue::new(HoldMode::Guest).unwrap();
        let soon = std::time::Duration::from_millis(20);
        let mut held = Vec::new();
        while let Ok(Some(permit)) = tokio::time::timeout(soon, queue.permit(1)).await {
            held.push(permit);
            assert!(held.len() <= OUTPUT / PIECE);
        }
        let id = ExecutionId::new("exec-1").unwrap();
        let signal = || QueuedRequest::Signal {
            id: id.clone(),
            signal: 15,
        };
        for _ in 0..WAITING {
            queue.put(signal()).unwrap();
        }
        assert_eq!(queue.put(signal()).unwrap_err().code, ErrorCode::Busy);
        // A kill request is accepted even if the queue is full.
        queue.put(QueuedRequest::Stop { id: id.clone() }).unwrap();
        queue
            .put(QueuedRequest::Drained { id: id.clone() })
            .unwrap();
        assert!(matches!(queue.take(), Some(QueuedRequest::Signal { .. })));
        queue.put(signal()).unwrap();
    }
}
