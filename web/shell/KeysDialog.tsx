/** All keys that work now. */
import { useState } from 'react'
import { Dialog } from '../kit/Dialog.tsx'
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
  const [groups] = useState(readKeyGroups)
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
      {groups.map(({ name, keys }) => (
        <section key={name}>
          <h3>{name}</h3>
          <dl>
            {Object.entries(keys).map(([chord, { label }]) => (
              <div key={chord} className={css.key}>
                <dt>{label}</dt>
                <dd>
                  <kbd>{keyLabel(chord)}</kbd>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </div>
  )
}
