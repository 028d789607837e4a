//! [`metrics_table!`](crate::metrics_table!): the metrics of a role as one table.

/// Defines a struct of handles of metrics. Each row has the description, the field, the name on the metrics page and the kind:
/// `counter`, `gauge`, `histogram`, or `seconds`, a histogram of times.
///
/// The function `registered` describes every metric and makes its handle with the recorder that is installed by then, so that each is
/// on the metrics page from the start.
#[macro_export]
macro_rules! metrics_table {
    ($(#[$about:meta])* $visible:vis struct $table:ident {
        $($(#[doc = $text:literal])+ $field:ident: $name:literal, $kind:ident;)+
    }) => {
        $(#[$about])*
        #[derive(Debug)]
        $visible struct $table {
            $($(#[doc = $text])+ pub(crate) $field: $crate::metrics_table!(@type $kind),)+
        }

        impl $table {
            fn registered() -> Self {
                Self {
                    $($field: $crate::metrics_table!(@handle $kind, $name, concat!($($text),+).trim()),)+
                }
            }
        }
    };
    (@type counter) => { ::metrics::Counter };
    (@type gauge) => { ::metrics::Gauge };
    (@type $histogram:ident) => { ::metrics::Histogram };
    (@handle counter, $name:literal, $text:expr) => {{
        ::metrics::describe_counter!($name, $text);
        ::metrics::counter!($name)
    }};
    (@handle gauge, $name:literal, $text:expr) => {{
        ::metrics::describe_gauge!($name, $text);
        ::metrics::gauge!($name)
    }};
    (@handle histogram, $name:literal, $text:expr) => {{
        ::metrics::describe_histogram!($name, $text);
        ::metrics::histogram!($name)
    }};
    (@handle seconds, $name:literal, $text:expr) => {{
        ::metrics::describe_histogram!($name, ::metrics::Unit::Seconds, $text);
        ::metrics::histogram!($name)
    }};
}
