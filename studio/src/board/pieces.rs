//! The drawings of pieces, made for Minuet: plain outlines in a box of 100×100 units.
//!
//! A page has them once, and boards refer to them.

use maud::{Markup, html};

/// Outline of each kind of piece, and lines inside it.
const DRAWINGS: [(&str, &str, &str); 6] = [
    (
        "pawn",
        "M50 21c-9 0-16 7-16 15.500c0 5.500 3 10 7 12.800c-.8 9.500-6 18.200-14.500 25c-2.300 1.800-3.500 4.200-3.500 7V86h54v-4.700c0-2.800\
         -1.200-5.200-3.500-7c-8.500-6.800-13.700-15.500-14.500-25c4-2.800 7-7.300 7-12.800C66 28 59 21 50 21z",
        "M30.500 77h39",
    ),
    (
        "rook",
        "M26 18h11v8h7.500v-8h11v8H63v-8h11v19l-8 8v22l8 7c2 1.800 3 4.300 3 7v5H23v-5c0-2.700 1-5.200 3-7l8-7V45l-8-8z",
        "M34 45h32M34 67h32M27.500 77h45",
    ),
    (
        "knight",
        "M27 86c0-15 5-24 15-32c4-3.200 6-6 6-9.500c-5 4-10 6.500-16 7.500c-2.500 4.500-7 6.500-11 4.500c-4.500-2.200-5-7.500-2-12l11-18c.5-5 2.500-9 6\
         -12l1-7l8 5.500C66 14 79 32 79 60c0 10-1 18-2.500 26z",
        "M47 47c4-2 7-6 8-11M31.500 77h46",
    ),
    (
        "bishop",
        "M50 11a5.500 5.500 0 0 1 4 9.300C63 26.500 69.500 35.500 69.500 46c0 6.500-3 11.500-7.500 14.800l2.500 8.700c8 1.500 12.500 5 12.500 11.500v5H23v-5c0-6.500 \
         4.500-10 12.500-11.500l2.500-8.700c-4.500-3.300-7.500-8.300-7.500-14.800c0-10.500 6.500-19.500 15.500-25.700A5.500 5.500 0 0 1 50 11z",
        "M50 33v18M42.500 41h15M38 61h24M35.500 69.500h29",
    ),
    (
        "queen",
        "M50 12a5 5 0 0 1 2.500 9.300L58 39l9-16.500a5 5 0 1 1 5.500 1.800L71 44l9.300-9.700a5 5 0 1 1 4.700 2.900L75 63c-1 3-1 5.500 0 7.500c2 2.500 3 5.500 \
         3 9V86H22v-6.500c0-3.500 1-6.500 3-9c1-2 1-4.500 0-7.500L15 37.200a5 5 0 1 1 4.700-2.900L29 44l-1.500-19.700a5 5 0 1 1 5.500-1.800L42 39l5.500-17.700A5 5 0 0 1 \
         50 12z",
        "M26 63.500c15-5 33-5 48 0M25 73c15-4 35-4 50 0",
    ),
    (
        "king",
        "M46 9h8v7h7v8h-7v8.500c3.500-3 8-4.500 13-4.500c10 0 17.500 7 17.500 16.500c0 8-5.500 14-10.500 20.500c-1.500 2-1.500 4 0 6c2.500 2.500 4 5.500 4 9V86H22v-6c0\
         -3.500 1.500-6.500 4-9c1.500-2 1.500-4 0-6c-5-6.500-10.500-12.500-10.500-20.500C15.500 35 23 28 33 28c5 0 9.500 1.500 13 4.500V24h-7v-8h7z",
        "M50 62V42c-3-5-9-8-16-8c-7 0-12.500 4.500-12.500 10.500M50 42c3-5 9-8 16-8c7 0 12.500 4.500 12.500 10.500M25 65c15-4 35-4 50 0M25 74c15-4 35-4 50 0",
    ),
];

/// Definitions of all pieces. A page that draws boards has them once.
pub fn pieces() -> Markup {
    html! {
        svg.definitions aria-hidden="true" width="0" height="0" {
            defs {
                @for (kind, outline, lines) in DRAWINGS {
                    symbol id=(format!("piece-{kind}")) viewBox="0 0 100 100" {
                        path.body d=(outline) {}
                        path.lines d=(lines) {}
                        @if kind == "knight" { circle.eye cx="43" cy="29" r="2.6" {} }
                    }
                }
                radialGradient id="stone-light" cx="0.36" cy="0.3" r="0.75" {
                    stop offset="0" stop-color="#fff" stop-opacity="0.42" {}
                    stop offset="0.45" stop-color="#fff" stop-opacity="0" {}
                    stop offset="0.7" stop-color="#000" stop-opacity="0" {}
                    stop offset="1" stop-color="#000" stop-opacity="0.22" {}
                }
                symbol id="piece-stone" viewBox="0 0 100 100" overflow="visible" {
                    circle.shade cx="52" cy="54" r="48" {}
                    circle.body cx="50" cy="50" r="47" {}
                    circle.shine cx="50" cy="50" r="47" fill="url(#stone-light)" {}
                }
                symbol id="piece-disc" viewBox="0 0 100 100" {
                    circle.body cx="50" cy="50" r="42" {}
                    circle.lines cx="50" cy="50" r="27" {}
                }
            }
        }
    }
}
