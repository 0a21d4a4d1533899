/** All keys that work now. */
import { Fragment, useState } from 'react'
import { Dialog } from '../kit/Dialog.tsx'
import { keyList } from './key-list.ts'
import { areKeysOn, keyLabel, readKeyGroups, turnKeys } from './keys.ts'
import css from './KeysDialog.module.css'

export function KeysDialog({ isOpen, onClose }: { isOpen: boolean; onClose(): void }) {
  return (
    <Dialog isOpen={isOpen} title="Keys" onClose={onClose}>
      <KeyList />
    </Dialog>
  )
}

function KeyList() {
  const [sections] = useState(() => keyList(readKeyGroups()))
  const [areOn, setOn] = useState(areKeysOn)
  const turn = (on: boolean) => {
    turnKeys(on)
    setOn(on)
  }
  return (
    <div className={css.body}>
      <label className={css.switch}>
        <input type="checkbox" checked={areOn} onChange={(event) => turn(event.target.checked)} />
        Single-key shortcuts. They never work while you type in a field.
      </label>
      {sections.map(({ name, lines }) => (
        <section key={name}>
          <h3>{name}</h3>
          <dl>
            {lines.map(({ label, chords }) => (
              <div key={label} className={css.key}>
                <dt>{label}</dt>
                <dd>
                  {chords.map((chord, i) => (
                    <Fragment key={chord}>
                      {i > 0 && ' or '}
                      <kbd>{keyLabel(chord)}</kbd>
                    </Fragment>
                  ))}
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </div>
  )
}
