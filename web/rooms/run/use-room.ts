/** The state of the room: the run, what is selected, and the place of the scrubber. All of it stands in the URL. */
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import type { RunRow, RunStatus } from '../../../src/part/log.ts'
import { api } from '../../data/client.ts'
import { useQuery, type Query } from '../../data/query.ts'
import { useResource } from '../../data/resource.ts'
import { createRunStore, type RunSnapshot, type RunStore } from './data/run-store.ts'
import { useEntry } from './data/use-entries.ts'
import { useFastQuery } from './data/use-fast-query.ts'
import { useModel, type RunModel } from './data/use-model.ts'
import { usePlay, type Play } from './data/use-play.ts'
import { createWindows, type Windows } from './data/windows.ts'
import { useHandles, type Handles } from './use-handles.ts'
import { treeRows, type TreeRow } from './layout/tree-rows.ts'
import { textToView, viewToText, type View } from './layout/scale.ts'
import { rowAt } from '../../../src/fold/log-rows.ts'
import { keyOf } from '../../../src/fold/merge-outline.ts'
import type { EntryOf } from '../../../src/part/entry.ts'
import type { StepNode } from '../../../src/fold/step-tree.ts'
import { readSelection, type Selection } from './selection.ts'

export interface Room {
  id: string
  store: RunStore
  windows: Windows
  snapshot: RunSnapshot
  /** Loaded apart from the outline: the header can be drawn at once. */
  row: RunRow | undefined
  model: RunModel
  query: Query
  /** Undefined until it is known. */
  status: RunStatus | undefined
  end: EntryOf<'run-end'> | undefined
  /** Of the whole run, wherever the scrubber stands. */
  lastStatus: RunStatus | undefined
  /** Where the scrubber stands; undefined: at the end. */
  at: number | undefined
  /** The last entry that is shown. */
  seq: number
  /** `undefined` returns to the end. */
  goTo(seq: number | undefined): void
  /** To the next entry, or with `block` to where the next step, block or mark begins. */
  step(by: 1 | -1, block: boolean): void
  selection: Selection
  /** `replace`: by keys, which adds no step to the history. */
  select(name: string | undefined, replace?: boolean): void
  view: View
  setView(view: View): void
  isFollowing: boolean
  follow(on: boolean): void
  rows: readonly TreeRow[]
  handles: Handles
  isFolded(node: StepNode): boolean
  fold(node: StepNode, on: boolean): void
  play: Play
  reload(): void
}

export function useRoom(id: string): Room {
  const [store] = useState(() => createRunStore(id))
  const [windows] = useState(() => createWindows(id))
  const [round, setRound] = useState(0)
  useEffect(() => store.open(), [store, round])
  const snapshot = useSyncExternalStore(store.subscribe, store.snapshot)
  const query = useQuery()
  const [atText, setAt] = useFastQuery(query, 'at')
  const [viewText, setViewText] = useFastQuery(query, 'z')
  const [unfollowed, setUnfollowed] = useState(false)
  const { lastSeq, items } = snapshot
  const wanted = /^\d{1,15}$/u.test(atText ?? '') ? Math.max(1, Number(atText)) : undefined
  const at = wanted === undefined || (snapshot.isLoaded && wanted > lastSeq) ? undefined : wanted
  const isFollowing = snapshot.isLive && !unfollowed && at === undefined
  const model = useModel(snapshot, at, snapshot.wasLive && (unfollowed || at !== undefined))

  const row = useResource(`row ${id}`, async () => {
    const { runs } = await api<{ runs: RunRow[] }>(`/api/runs?idPrefix=${encodeURIComponent(id)}&limit=1`)
    return runs[0]?.id === id ? runs[0] : undefined
  }).value
  const end = useEntry(windows, model.facts.endSeq) as EntryOf<'run-end'> | undefined
  const { state } = model.facts
  const shown = items.length === 0 ? row?.status : state === 'ended' ? (end?.outcome ?? row?.status) : state
  // The row was read when the run still went on.
  const status = state === 'ended' && (shown === 'running' || shown === 'suspended') ? undefined : shown

  const { marks } = model.whole
  const wholeEnd = useEntry(windows, marks.findLast(({ type }) => type === 'run-end')?.seq)
  const outcome = wholeEnd?.type === 'run-end' ? wholeEnd.outcome : row?.status
  const lastStatus = at === undefined ? status : snapshot.isLive ? liveStatus(marks) : outcome

  const goTo = useCallback(
    (seq: number | undefined) => setAt(seq === undefined ? undefined : String(Math.max(1, Math.min(seq, lastSeq)))),
    [setAt, lastSeq],
  )
  const play = usePlay(windows, { seq: at, lastSeq, goTo })
  const places = useMemo(() => items.map((item) => ({ seq: keyOf(item) })), [items])
  const seq = at ?? lastSeq

  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set())
  const rows = useMemo(() => treeRows(model.tree, ({ step }) => folded.has(step.path)), [model.tree, folded])
  const handles = useHandles(model.tree, windows)
  const selectedText = query.get('sel')
  const selection = useMemo(
    () =>
      readSelection(selectedText, model.tree, (from) => {
        const item = items[rowAt(places, from)]
        if (item === undefined) return undefined
        return model.tree.of(item.k === 'step' ? item.path : item.step, from)
      }),
    [selectedText, model.tree, items, places],
  )
  const setQuery = query.set
  return {
    id,
    store,
    windows,
    snapshot,
    row,
    model,
    query,
    status,
    end,
    lastStatus,
    at,
    seq,
    goTo,
    step(by, block) {
      play.stop()
      if (!block) return goTo(seq + by)
      const here = rowAt(places, seq)
      const next = by > 0 ? here + 1 : places[here]?.seq === seq ? here - 1 : here
      goTo(places[next]?.seq ?? (by > 0 ? lastSeq : 1))
    },
    selection,
    select: useCallback(
      (name, replace = false) => {
        setUnfollowed(true)
        setQuery({ sel: name }, { replace })
      },
      [setQuery],
    ),
    view: useMemo(() => textToView(viewText, model.scale), [viewText, model.scale]),
    setView: (view) => setViewText(viewToText(view, model.scale)),
    isFollowing,
    follow: useCallback(
      (on) => {
        setUnfollowed(!on)
        if (on) setAt(undefined)
      },
      [setAt],
    ),
    rows,
    handles,
    isFolded: ({ step }) => folded.has(step.path),
    fold: useCallback(({ step: { path } }, on) => {
      setFolded((before) => {
        const next = new Set(before)
        if (on) next.add(path)
        else next.delete(path)
        return next
      })
    }, []),
    play,
    reload: () => setRound((n) => n + 1),
  }
}

function liveStatus(marks: RunModel['whole']['marks']): RunStatus {
  const last = marks.findLast(({ type }) => type === 'suspend' || type === 'resume')
  return last?.type === 'suspend' ? 'suspended' : 'running'
}
