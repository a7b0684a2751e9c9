//! Texts, and what is to be done with them before they are used: nothing, rendering, or decrypting.

use std::sync::Arc;

use super::Value;

/// A string, and what is to be done with it before it is used.
#[derive(Clone)]
pub struct Text {
    text: Arc<str>,
    nature: Nature,
}

#[derive(Clone)]
enum Nature {
    Data,
    /// Data that the user wrote, in a file or on the command line: it may be taken for an expression.
    Written,
    Template,
    /// The text is an envelope of Ansible Vault, to be decrypted when it is used.
    Sealed(Arc<str>),
    /// The text came out of this envelope.
    Opened(Arc<str>),
    /// Data that stays text, whatever it spells.
    Kept {
        of_lookup: bool,
    },
    /// The text spells this list or map.
    Spelling(Arc<Value>),
}

impl Text {
    /// Plain data: never templated.
    pub fn data(text: impl Into<Arc<str>>) -> Self {
        Text { text: text.into(), nature: Nature::Data }
    }

    /// Text written by the user: a template if it contains `{{`, `{%` or `{#`.
    pub fn written(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let nature = if has_template_marks(&text) { Nature::Template } else { Nature::Written };
        Text { text, nature }
    }

    /// Text that is made of nothing but what the user wrote; never templated.
    pub fn made_of_written(text: impl Into<Arc<str>>) -> Self {
        Text { text: text.into(), nature: Nature::Written }
    }

    /// True if the user wrote the text: it did not come from a host, a file or a program.
    pub fn is_written(&self) -> bool {
        matches!(self.nature, Nature::Written | Nature::Template)
    }

    /// An envelope of Ansible Vault, as the user wrote it at `place`; opened when it is used.
    pub fn sealed(envelope: impl Into<Arc<str>>, place: impl Into<Arc<str>>) -> Self {
        Text { text: envelope.into(), nature: Nature::Sealed(place.into()) }
    }

    /// What came out of an envelope: plain data that can be told from other data.
    pub fn opened(text: impl Into<Arc<str>>, envelope: impl Into<Arc<str>>) -> Self {
        Text { text: text.into(), nature: Nature::Opened(envelope.into()) }
    }

    /// The same text as data that stays text, whatever it spells.
    #[must_use]
    pub fn kept(self, of_lookup: bool) -> Self {
        Text { nature: Nature::Kept { of_lookup }, ..self }
    }

    /// True if the text stays text, whatever it spells.
    pub fn is_kept(&self) -> bool {
        matches!(self.nature, Nature::Kept { .. })
    }

    /// The name that Ansible before 2.19 has for the type of a text of a sort of its own.
    pub fn old_type_name(&self) -> Option<&'static str> {
        match self.nature {
            Nature::Opened(_) => Some("AnsibleVaultEncryptedUnicode"),
            Nature::Kept { of_lookup: true } => Some("NativeJinjaUnsafeText"),
            Nature::Kept { of_lookup: false } => Some("NativeJinjaText"),
            _ => None,
        }
    }

    /// What a template gave that has a list or map written around it, as in `[{{ a }}, {{ b }}]`: to whoever wants a text
    /// it is this text, to whoever wants a list or map it is that value, as all such results were before Ansible 2.19.
    pub fn spelling(text: impl Into<Arc<str>>, value: Value) -> Self {
        Text { text: text.into(), nature: Nature::Spelling(Arc::new(value)) }
    }

    /// The list or map that the text spells, if it was made to.
    pub fn spelled(&self) -> Option<&Value> {
        match &self.nature {
            Nature::Spelling(value) => Some(value),
            _ => None,
        }
    }

    /// The text; of a sealed one the envelope.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if the text is to be rendered, or opened, when it is used.
    pub fn is_template(&self) -> bool {
        matches!(self.nature, Nature::Template | Nature::Sealed(_))
    }

    /// Where a sealed text was written; `None` for any other.
    pub fn sealed_at(&self) -> Option<&str> {
        match &self.nature {
            Nature::Sealed(place) => Some(place),
            _ => None,
        }
    }

    /// The envelope of a text that is sealed or was; `None` for any other.
    pub fn envelope(&self) -> Option<&str> {
        match &self.nature {
            Nature::Sealed(_) => Some(&self.text),
            Nature::Opened(envelope) => Some(envelope),
            Nature::Data | Nature::Written | Nature::Template | Nature::Kept { .. } | Nature::Spelling(_) => None,
        }
    }

    /// The same text as plain data; what is sealed stays so, and what spells a value goes on to.
    pub(super) fn into_data(self) -> Text {
        match self.nature {
            Nature::Sealed(_) | Nature::Spelling(_) | Nature::Kept { .. } | Nature::Written => self,
            _ => Text { nature: Nature::Data, ..self },
        }
    }

    /// The same text without its envelope, if it came out of one.
    pub(super) fn without_envelope(self) -> Text {
        match self.nature {
            Nature::Opened(_) => Text { nature: Nature::Data, ..self },
            _ => self,
        }
    }
}

/// True if Jinja2 would find something to do in `text`.
pub fn has_template_marks(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn a_sealed_text_stays_sealed_until_it_is_used() {
        let sealed = Value::Str(Text::sealed("$ANSIBLE_VAULT;1.1;AES256\n6162\n", "vars.yml:1:4"));
        for value in [sealed.clone(), sealed.clone().into_data(), Value::list(vec![sealed])] {
            assert!(value.has_templates());
        }
        let opened = Text::opened("secret", "$ANSIBLE_VAULT;…");
        assert_eq!((opened.is_template(), opened.envelope()), (false, Some("$ANSIBLE_VAULT;…")));
        let Value::Str(data) = Value::Str(opened).into_data() else { panic!("a text") };
        assert_eq!((data.as_str(), data.envelope()), ("secret", None));
    }
}
