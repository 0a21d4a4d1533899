import { useState } from 'react'
import { Button } from '../../../kit/Button.tsx'
import { downloadText } from '../../../kit/download.ts'
import { bytes } from '../../../kit/format.ts'
import css from './Inspector.module.css'

const shown = 2048
const largest = 2 * 1024 ** 2

/** A text as it is, cut after 2 KB until all of it is asked for. */
export function LongText({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false)
  const isCut = text.length > shown && !isWhole
  return (
    <div className={css.long}>
      {isCut ? `${text.slice(0, shown)}…` : text}
      {isCut && text.length <= largest && (
        <Button look="quiet" onClick={() => setWhole(true)}>{`Show all (${bytes(text.length)})`}</Button>
      )}
      {isCut && text.length > largest && (
        <Button
          look="quiet"
          onClick={() => downloadText('text.txt', text)}
        >{`Download (${bytes(text.length)})`}</Button>
      )}
    </div>
  )
}
