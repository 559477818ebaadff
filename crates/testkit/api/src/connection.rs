//! A TCP listener whose connections can end with a reset, which the fault `close` needs.
//! Invariant: a connection ends with a reset only after `end_with_reset` on its `ConnectionHandle`; other connections end normally.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

pub struct ResettableListener(pub TcpListener);

/// One connection of the listener.
pub struct ResettableStream {
    stream: TcpStream,
    handle: ConnectionHandle,
}

/// The handle by which the handler of a request controls the connection of this request.
#[derive(Clone, Default)]
pub struct ConnectionHandle(Arc<AtomicBool>);

impl ConnectionHandle {
    /// Makes the connection end with a reset instead of an orderly close.
    pub fn end_with_reset(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn ends_with_reset(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Listener for ResettableListener {
    type Io = ResettableStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (ResettableStream, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // The fault `drip` sends single bytes, which Nagle's algorithm would join. If the option cannot be set, the other faults still work.
        drop(stream.set_nodelay(true));
        (ResettableStream { stream, handle: ConnectionHandle::default() }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, ResettableListener>> for ConnectionHandle {
    fn connect_info(stream: IncomingStream<'_, ResettableListener>) -> ConnectionHandle {
        stream.io().handle.clone()
    }
}

impl Drop for ResettableStream {
    fn drop(&mut self) {
        if self.handle.ends_with_reset() {
            // With a linger time of zero, the kernel closes the socket with a reset.
            drop(self.stream.set_zero_linger());
        }
    }
}

impl AsyncRead for ResettableStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for ResettableStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The shutdown is skipped, because after an orderly end the client would not see the reset.
        if self.handle.ends_with_reset() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
