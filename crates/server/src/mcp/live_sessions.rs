//! The transport sessions of older protocol revisions that are in memory.
//!
//! Each takes about 150 KB there, and a client may open as many as it likes. So only those with an open stream and the ones used last
//! stay; all others are rows (`transport_store`), from which the SDK brings a session back on its next request or stream.
//! Invariant: a session with an open stream is never dropped. A dropped session loses nothing that its client could still read.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, ServerSseMessage, SessionId, SessionManager};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::request_scope::RequestScope;

/// A session that was not used for this long leaves the memory even if there is room.
const IDLE: Duration = Duration::from_secs(30);
/// The pause between two looks for such sessions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// A stream that broke is resumed within this time, or never. The SDK keeps the events of an answered request as long.
const RESUMED_WITHIN: Duration = Duration::from_secs(60);
/// A request gets its stream within this time after the SDK has looked for its session.
const STREAM_WITHIN: Duration = Duration::from_secs(5);
/// Sessions that may be about to get a stream are kept beyond the limit, up to this multiple of it.
const MOST_BEYOND: usize = 8;

/// The SDK's sessions in memory, with a bound on those that have no open stream.
pub struct LiveSessions {
    /// Holds the sessions.
    sdk: LocalSessionManager,
    /// The use of each of them.
    table: Arc<Mutex<Table>>,
    /// The most sessions without an open stream.
    most_idle: usize,
}

#[derive(Default)]
struct Table {
    sessions: HashMap<SessionId, LiveSession>,
    /// The sessions that were closed here and whose task at the SDK has not ended yet, with their number. The end of such a task must
    /// not close a session that was brought back under the same id meanwhile.
    ending: HashMap<SessionId, usize>,
}

/// A session in memory.
struct LiveSession {
    used: Instant,
    /// The number of open streams.
    streams: usize,
    /// Until when a message or a stream is expected, for which the session must be there.
    expected: Instant,
    /// The session was brought back from its row, and no stream was opened since.
    came_back: bool,
}

impl Table {
    fn add(&mut self, id: &SessionId) {
        let now = Instant::now();
        self.sessions.insert(id.clone(), LiveSession { used: now, streams: 0, expected: now, came_back: false });
    }

    /// Adds a session that is about to be used: its first message, or the request for which it was brought back, follows.
    fn add_expected(&mut self, id: &SessionId, came_back: bool) {
        self.add(id);
        if let Some(session) = self.sessions.get_mut(id) {
            session.expected = session.used + STREAM_WITHIN;
            session.came_back = came_back;
        }
    }

    /// Forgets a session that is about to be closed. Returns whether there was one.
    fn remove(&mut self, id: &SessionId) -> bool {
        let removed = self.sessions.remove(id).is_some();
        if removed {
            *self.ending.entry(id.clone()).or_default() += 1;
        }
        removed
    }

    /// Notes that the SDK's task of a session has ended. Returns whether this was noted before, by `remove`.
    fn task_ended(&mut self, id: &SessionId) -> bool {
        let Some(count) = self.ending.get_mut(id) else { return false };
        *count -= 1;
        if *count == 0 {
            self.ending.remove(id);
        }
        true
    }

    /// Removes the sessions that must leave the memory: those that were not used lately, and the oldest ones beyond the limit.
    fn take_dropped(&mut self, most_idle: usize) -> Vec<SessionId> {
        let now = Instant::now();
        let mut idle: Vec<(Instant, SessionId)> = Vec::new();
        let mut expected: Vec<(Instant, SessionId)> = Vec::new();
        for (id, session) in self.sessions.iter().filter(|(_, session)| session.streams == 0) {
            let list = if session.expected > now { &mut expected } else { &mut idle };
            list.push((session.used, id.clone()));
        }
        idle.sort();
        expected.sort();
        let excess = idle.len().saturating_sub(most_idle);
        let too_old = idle.iter().take_while(|(used, _)| now.duration_since(*used) >= IDLE).count();
        idle.truncate(excess.max(too_old));
        expected.truncate(expected.len().saturating_sub(most_idle.saturating_mul(MOST_BEYOND)));
        let dropped: Vec<SessionId> = idle.into_iter().chain(expected).map(|(_, id)| id).collect();
        for id in &dropped {
            self.remove(id);
        }
        dropped
    }
}

impl LiveSessions {
    /// Returns the sessions of a server, which are none. Until `stop`, a task drops those that are not used.
    pub fn start(most_idle: usize, stop: CancellationToken) -> Arc<Self> {
        let mut sdk = LocalSessionManager::default();
        // The SDK would end a session in its own task, and answer the requests that come just then with an error.
        sdk.session_config.keep_alive = None;
        let sessions = Arc::new(Self { sdk, table: Arc::default(), most_idle });
        tokio::spawn(sweep(Arc::downgrade(&sessions), stop));
        sessions
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn drop_excess(&self, most_idle: usize) {
        let dropped = self.table().take_dropped(most_idle);
        for id in dropped {
            if let Err(error) = self.sdk.close_session(&id).await {
                tracing::debug!(%error, "a transport session was closed twice");
            }
        }
    }

    /// Notes the use of a session, and that the expected stream is there if one was expected.
    fn note_use(&self, id: &SessionId) {
        if let Some(session) = self.table().sessions.get_mut(id) {
            session.used = Instant::now();
            // The SDK sends the stored messages to a session that was brought back, before it opens the stream of its request.
            if !session.came_back {
                session.expected = session.used;
            }
        }
    }

    /// Wraps a stream of a session, so that the session stays in memory until the stream ends.
    fn tracked<S>(&self, id: &SessionId, stream: S) -> TrackedStream<S> {
        if let Some(session) = self.table().sessions.get_mut(id) {
            session.used = Instant::now();
            session.expected = session.used;
            session.came_back = false;
            session.streams += 1;
        }
        TrackedStream { stream: Box::pin(stream), table: self.table.clone(), id: id.clone(), ended: false }
    }
}

/// Drops sessions that are not used, until the server stops.
async fn sweep(sessions: Weak<LiveSessions>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP_INTERVAL) => {}
            () = stop.cancelled() => return,
        }
        let Some(sessions) = sessions.upgrade() else { return };
        sessions.drop_excess(sessions.most_idle).await;
    }
}

/// A stream of a session.
struct TrackedStream<S> {
    stream: Pin<Box<S>>,
    table: Arc<Mutex<Table>>,
    id: SessionId,
    /// The stream came to its end. Otherwise its client may come back to read on.
    ended: bool,
}

impl<S: Stream> Stream for TrackedStream<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let polled = self.stream.as_mut().poll_next(context);
        self.ended |= matches!(polled, Poll::Ready(None));
        polled
    }
}

impl<S> Drop for TrackedStream<S> {
    fn drop(&mut self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = table.sessions.get_mut(&self.id) {
            session.streams = session.streams.saturating_sub(1);
            session.used = Instant::now();
            if !self.ended {
                session.expected = session.used + RESUMED_WITHIN;
            }
        }
    }
}

impl SessionManager for LiveSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.drop_excess(self.most_idle.saturating_sub(1)).await;
        let (id, transport) = self.sdk.create_session().await?;
        self.table().add_expected(&id, false);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let answer = self.sdk.initialize_session(id, message).await;
        self.note_use(id);
        answer
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        if let Some(session) = self.table().sessions.get_mut(id) {
            session.used = Instant::now();
            session.expected = session.used + STREAM_WITHIN;
        }
        self.sdk.has_session(id).await
    }

    /// Closes a session. The SDK calls this within a request if the client ends the session, and outside of any request when the task
    /// of a session has ended.
    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        {
            let mut table = self.table();
            if RequestScope::current().is_err() && table.task_ended(id) {
                return Ok(());
            }
            if RequestScope::current().is_ok() {
                table.remove(id);
            } else {
                table.sessions.remove(id);
            }
        }
        self.sdk.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.sdk.create_stream(id, message).await?;
        Ok(self.tracked(id, stream))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        let accepted = self.sdk.accept_message(id, message).await;
        self.note_use(id);
        accepted
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.sdk.create_standalone_stream(id).await?;
        Ok(self.tracked(id, stream))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.sdk.resume(id, last_event_id).await?;
        Ok(self.tracked(id, stream))
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.drop_excess(self.most_idle.saturating_sub(1)).await;
        let outcome = self.sdk.restore_session(id.clone()).await?;
        if matches!(outcome, RestoreOutcome::Restored(_)) {
            self.table().add_expected(&id, true);
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> SessionId {
        name.to_owned().into()
    }

    async fn table_of(names: &[&str]) -> Table {
        let mut table = Table::default();
        for name in names {
            table.add(&id(name));
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        table
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_sessions_without_a_stream_leave_the_memory() {
        let mut table = table_of(&["a", "b", "c", "d"]).await;
        table.sessions.get_mut(&id("a")).unwrap().streams = 1;
        table.sessions.get_mut(&id("b")).unwrap().expected = Instant::now() + STREAM_WITHIN;
        assert_eq!(table.take_dropped(1), [id("c")]);
        assert!(table.take_dropped(1).is_empty());
        assert_eq!(table.take_dropped(0), [id("d"), id("b")], "nothing is kept for a stream beyond the bound");
        tokio::time::advance(IDLE * 9).await;
        assert!(table.take_dropped(9).is_empty(), "a session with a stream stays");
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_is_not_used_leaves_the_memory_although_there_is_room() {
        let mut table = table_of(&["a", "b"]).await;
        tokio::time::advance(IDLE - Duration::from_millis(15)).await;
        assert_eq!(table.take_dropped(9), [id("a")]);
        assert_eq!(table.sessions.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_dropped_session_does_not_close_the_one_that_came_back() {
        let mut table = table_of(&["a"]).await;
        assert!(table.remove(&id("a")));
        table.add(&id("a"));
        assert!(table.task_ended(&id("a")), "the end of the first");
        assert!(!table.task_ended(&id("a")), "the end of the second is its own");
        assert!(!table.remove(&id("b")) && table.ending.is_empty());
    }
}
