//! The value of a credential in memory.
//! Invariant: only `expose` returns the value. The type has neither `Display` nor `Serialize`, and `Debug` hides the
//! value.

use std::fmt;

/// The value of a credential. Dropping the secret overwrites its buffer.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns the value. A caller must not put it into a log line, an error or anything that is stored unencrypted.
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
        // This is the best that code without `unsafe` can do: `clear` keeps the buffer, so the zeros overwrite the
        // value before it is freed. `black_box` keeps the compiler from removing the write as unused.
        let length = self.0.len();
        self.0.clear();
        self.0.extend(std::iter::repeat_n('\0', length));
        std::hint::black_box(&self.0);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn debug_output_hides_the_value() {
        let secret = super::Secret::new("hunter2");
        assert!(!format!("{secret:?} {:?}", Some(&secret)).contains("hunter2"));
        assert_eq!(secret.expose(), "hunter2");
    }
}
