//! A credential in memory.
//! Invariant: it has no `Display`, no `Serialize`, and its `Debug` does not show it; only `expose` does.

use std::fmt;

#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for putting it on the wire and nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        // Best effort without `unsafe`: the buffer is overwritten before it is freed.
        let length = self.0.len();
        self.0.clear();
        self.0.extend(std::iter::repeat_n('\0', length));
        std::hint::black_box(&self.0);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn debug_does_not_show_it() {
        let secret = super::Secret::new("hunter2");
        assert!(!format!("{secret:?} {:?}", Some(&secret)).contains("hunter2"));
        assert_eq!(secret.expose(), "hunter2");
    }
}
