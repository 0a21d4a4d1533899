/** What goes over the wire while a run answers, frame by frame, in the protocol that the reader chooses. */
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, useState } from 'react'
import type { Entry } from '../../../src/part/entry.ts'
import { followRun } from '../../data/live.ts'
import { Button } from '../../kit/Button.tsx'
import { Copy } from '../../kit/Copy.tsx'
import { duration } from '../../kit/format.ts'
import { JsonTree } from '../../kit/JsonTree.tsx'
import { createFrames, payloadOf, type WireFrame } from './frames.ts'
import css from './Frames.module.css'

const names = [
  ['ui', 'UI'],
  ['openai', 'OpenAI'],
  ['ag-ui', 'AG-UI'],
  ['text', 'Text'],
  ['log', 'Log'],
] as const

interface Props {
  runId: string | undefined
  wire: string
  onWire(name: string): void
}

export default function FramesPanel({ runId, wire, onWire }: Props) {
  const [filter, setFilter] = useState('')
  const all = useFrames(runId, wire)
  const words = filter.trim().toLowerCase()
  const shown = words === '' ? all : all.filter(({ text }) => text.toLowerCase().includes(words))
  return (
    <div className={css.panel} data-testid="frames">
      <div className={css.bar}>
        <fieldset className={css.wires}>
          <legend className="visually-hidden">Protocol</legend>
          {names.map(([name, label]) => (
            <Button key={name} look="quiet" aria-pressed={wire === name} onClick={() => onWire(name)}>
              {label}
            </Button>
          ))}
        </fieldset>
        <input
          type="search"
          aria-label="Filter frames"
          placeholder="Filter"
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
        <span className={css.count}>{words === '' ? all.length : `${shown.length}/${all.length}`}</span>
        <Copy text={() => shown.map(({ text }) => text).join(wire === 'text' ? '' : '\n')} label="Copy frames" />
      </div>
      {runId === undefined ? (
        <p className={css.empty}>Ask something: the frames of its answer come here as they are sent.</p>
      ) : (
        <Rows key={`${runId} ${wire}`} frames={shown} />
      )}
    </div>
  )
}

function Rows({ frames }: { frames: readonly WireFrame[] }) {
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const [chosen, setChosen] = useState<WireFrame>()
  // oxlint-disable-next-line react/incompatible-library -- The page is not compiled by the React Compiler.
  const rows = useVirtualizer({
    count: frames.length,
    getScrollElement: () => box.current,
    estimateSize: () => 24,
    overscan: 20,
  })
  useEffect(() => {
    if (isAtEnd.current && frames.length > 0) box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [frames.length])
  return (
    <>
      <div
        ref={box}
        className={css.rows}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40
        }}
      >
        <ol style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start }) => {
            const frame = frames[index]!
            return (
              <li key={frame.index} style={{ transform: `translateY(${start}px)` }}>
                {frame.note !== undefined ? (
                  <span
                    className={css.again}
                  >{`${duration(frame.at)} · answered: the run goes on in a new stream`}</span>
                ) : (
                  <button
                    type="button"
                    className={css.frame}
                    data-testid="frame"
                    aria-pressed={chosen === frame}
                    onClick={() => setChosen(chosen === frame ? undefined : frame)}
                  >
                    <span className={css.at}>{duration(frame.at)}</span>
                    <code>{frame.text.slice(0, 400)}</code>
                  </button>
                )}
              </li>
            )
          })}
        </ol>
      </div>
      {chosen !== undefined && (
        <section className={css.chosen} aria-label="Frame">
          <JsonTree key={chosen.index} value={payloadOf(chosen.text)} depth={3} />
        </section>
      )}
    </>
  )
}

/** A new list once for each frame of the screen. */
function useFrames(runId: string | undefined, wire: string): readonly WireFrame[] {
  const [state, setState] = useState<{ key: string; list: readonly WireFrame[] }>({ key: '', list: [] })
  const key = `${runId} ${wire}`
  useEffect(() => {
    if (runId === undefined) return
    const frames = createFrames(wire)
    let timer: number | undefined
    const leave = followRun(runId, 0, {
      onEntries(entries: readonly Entry[]) {
        for (const entry of entries) frames.apply(entry)
        timer ??= requestAnimationFrame(() => {
          timer = undefined
          setState({ key, list: [...frames.list] })
        })
      },
    })
    return () => {
      leave()
      if (timer !== undefined) cancelAnimationFrame(timer)
    }
  }, [runId, wire, key])
  return state.key === key ? state.list : none
}

const none: readonly WireFrame[] = []
