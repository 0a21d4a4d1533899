/** The editor in the page's colours. Its styles carry the nonce of the page: the policy allows no others. */
import { defaultHighlightStyle, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
import { EditorView } from '@codemirror/view'

/** Our colours for those of the default style, which is for light pages only. */
const inks = new Map([
  ['#00c', 'var(--accent-ink)'],
  ['#00f', 'var(--accent-ink)'],
  ['#940', 'var(--ink-soft)'],
  ['#a11', 'var(--good-ink)'],
  ['#e40', 'var(--warn-ink)'],
  ['#164', 'var(--warn-ink)'],
  ['#219', 'var(--warn-ink)'],
  ['#708', 'var(--warn-ink)'],
])
const highlight = HighlightStyle.define(
  defaultHighlightStyle.specs.map(({ color, ...spec }) => ({ ...spec, color: inks.get(String(color)) ?? 'inherit' })),
)

const look = EditorView.theme({
  '&': { height: '100%', fontSize: '13px', backgroundColor: 'var(--ground)', color: 'var(--ink)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '20px' },
  '.cm-content': { caretColor: 'var(--ink)', padding: '8px 0' },
  '.cm-cursor, .cm-dropCursor': { borderLeftColor: 'var(--ink)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'light-dark(#b9ccff, #33509b)',
  },
  '.cm-gutters': { backgroundColor: 'var(--ground)', color: 'var(--ink-soft)', border: 'none' },
  '.cm-activeLine': { backgroundColor: 'light-dark(#f5f6f8aa, #181c22aa)' },
  '.cm-activeLineGutter': { backgroundColor: 'var(--panel)', color: 'var(--ink)' },
  '.cm-pointed': { backgroundColor: 'var(--selected)' },
  '.cm-panels': { backgroundColor: 'var(--panel)', color: 'var(--ink)', borderColor: 'var(--line)' },
  '.cm-panel input, .cm-panel button': { background: 'var(--ground)', color: 'var(--ink)', fontSize: '13px' },
  '.cm-tooltip': {
    backgroundColor: 'var(--raised)',
    color: 'var(--ink)',
    border: '1px solid var(--line)',
    borderRadius: '6px',
    boxShadow: 'var(--shadow)',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    backgroundColor: 'var(--selected)',
    color: 'var(--ink)',
  },
  '.cm-tooltip.cm-completionInfo': { maxWidth: '320px', padding: '6px 10px', fontFamily: 'var(--sans)' },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '700' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--error-part)' },
  '.cm-changedLine': { backgroundColor: 'light-dark(#e5f6ec, #16301f) !important' },
  '.cm-deletedChunk': { backgroundColor: 'light-dark(#fdece6, #38201a)' },
  '.cm-deletedChunk .cm-chunkButtons button': { padding: '2px 8px', borderRadius: '4px', cursor: 'pointer' },
})

export function editorLook(): Extension {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ''
  return [EditorView.cspNonce.of(nonce), look, syntaxHighlighting(highlight)]
}
