/** The text of an agent, in an editor that knows its schema. The server's faults stand at their lines. */
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  type CompletionContext,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from '@codemirror/language'
import { lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint'
import { unifiedMergeView } from '@codemirror/merge'
import { Compartment, EditorState, StateEffect, StateField } from '@codemirror/state'
import {
  Decoration,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  type DecorationSet,
} from '@codemirror/view'
import { useEffect, useRef } from 'react'
import type { AgentFault } from '../../../src/part/agent-tree.ts'
import { editorLook } from './editor-look.ts'
import { placesOfFaults } from './fault-places.ts'
import { optionsAt, type Schema } from './schema-options.ts'
import { yamlPlace } from './yaml-place.ts'

interface Props {
  text: string
  onText(text: string): void
  isReadOnly: boolean
  faults: readonly AgentFault[]
  schema: Schema | undefined
  /** The line that the page points at, from 1: it is shown and marked. A new object shows it again. */
  pointed: { line: number } | undefined
  onLine(line: number): void
  /** What stands on the server's disk, to compare with and to take pieces of. */
  theirs: string | undefined
  /** In a dialog the Tab key goes to the next control, as everywhere in it. */
  tab?: 'indents' | 'leaves'
}

const point = StateEffect.define<number | undefined>()
const pointedLine = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, { effects, state, changes }) {
    let next = marks.map(changes)
    for (const effect of effects) {
      if (!effect.is(point)) continue
      const line = effect.value
      const isThere = line !== undefined && line >= 1 && line <= state.doc.lines
      next = isThere
        ? Decoration.set(Decoration.line({ class: 'cm-pointed' }).range(state.doc.line(line).from))
        : Decoration.none
    }
    return next
  },
  provide: (field) => EditorView.decorations.from(field),
})

export default function YamlEditor({
  text,
  onText,
  isReadOnly,
  faults,
  schema,
  pointed,
  onLine,
  theirs,
  tab = 'indents',
}: Props) {
  const box = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const parts = useRef({ readOnly: new Compartment(), compared: new Compartment() })
  const latest = useRef({ text, onText, onLine, schema, tab })
  useEffect(() => {
    latest.current = { text, onText, onLine, schema, tab }
  })

  useEffect(() => {
    const { readOnly, compared } = parts.current
    const complete = (context: CompletionContext) => completionsOf(context, latest.current.schema)
    const editor = new EditorView({
      parent: box.current!,
      doc: latest.current.text,
      extensions: [
        editorLook(),
        EditorView.lineWrapping,
        [lineNumbers(), foldGutter(), lintGutter(), history(), drawSelection(), indentOnInput(), bracketMatching()],
        [closeBrackets(), highlightActiveLine(), highlightActiveLineGutter(), pointedLine, indentUnit.of('  '), yaml()],
        autocompletion({ override: [complete] }),
        keymap.of([
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...defaultKeymap,
          ...historyKeymap,
          ...foldKeymap,
          ...lintKeymap,
          ...(latest.current.tab === 'indents' ? [indentWithTab] : []),
        ]),
        EditorView.contentAttributes.of({
          'aria-label': 'YAML of the agent',
          'aria-description': latest.current.tab === 'indents' ? 'Esc, then Tab, leaves it' : '',
          spellcheck: 'false',
          tabindex: '0',
        }),
        EditorView.updateListener.of(({ docChanged, selectionSet, state, view: { hasFocus } }) => {
          if (docChanged) latest.current.onText(state.doc.toString())
          if (selectionSet && hasFocus) latest.current.onLine(state.doc.lineAt(state.selection.main.head).number)
        }),
        readOnly.of([]),
        compared.of([]),
      ],
    })
    view.current = editor
    return () => {
      view.current = undefined
      editor.destroy()
    }
  }, [])

  useEffect(() => {
    const editor = view.current!
    const { length } = editor.state.doc
    if (editor.state.doc.toString() !== text) editor.dispatch({ changes: { from: 0, to: length, insert: text } })
  }, [text])
  useEffect(() => {
    const state = [EditorState.readOnly.of(isReadOnly), EditorView.editable.of(!isReadOnly)]
    view.current!.dispatch({ effects: parts.current.readOnly.reconfigure(isReadOnly ? state : []) })
  }, [isReadOnly])
  useEffect(() => {
    const merge = theirs === undefined ? [] : unifiedMergeView({ original: theirs, gutter: false })
    view.current!.dispatch({ effects: parts.current.compared.reconfigure(merge) })
  }, [theirs])
  useEffect(() => {
    const { state } = view.current!
    view.current!.dispatch(setDiagnostics(state, placesOfFaults(state.doc.toString(), faults)))
  }, [faults])
  useEffect(() => {
    const editor = view.current!
    const { doc } = editor.state
    const line = pointed && pointed.line >= 1 && pointed.line <= doc.lines ? pointed.line : undefined
    const shown = line === undefined ? [] : [EditorView.scrollIntoView(doc.line(line).from, { y: 'center' })]
    editor.dispatch({ effects: [point.of(line), ...shown] })
  }, [pointed])

  return <div ref={box} style={{ flex: 1, minHeight: 0, overflow: 'hidden' }} />
}

function completionsOf({ state, pos, explicit }: CompletionContext, schema: Schema | undefined) {
  if (schema === undefined) return null
  const place = yamlPlace(state.doc.toString(), pos)
  if (place === undefined || (place.typed === '' && !explicit && place.key === undefined)) return null
  const options = optionsAt(schema, place).map(({ label, info, kind }) => ({
    label,
    type: kind === 'key' ? 'property' : 'constant',
    ...(info === undefined ? undefined : { info }),
    ...(kind === 'key' ? { apply: `${label}: ` } : undefined),
  }))
  return { from: place.from, options, validFor: /^[\w.-]*$/u }
}
