/** The test cases of a served folder, opened when somebody first asks for them: few servers need the runner. */
import { resolve } from 'node:path'
import type { TestDesk, TestDeskOptions } from '../regress/test-desk.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { ErrorGuard } from './error-guard.ts'

interface ServedTestsOptions extends Pick<TestDeskOptions, 'onError' | 'secrets' | 'config'> {
  /** The data folder, or `none`. */
  data: string
  runtime: Runtime
  folder: Pick<TestDeskOptions, 'dir' | 'env' | 'endpoints'> & { cwd?: string; guard?: ErrorGuard }
}

export interface ServedTests {
  open(this: void): Promise<TestDesk>
  close(): Promise<void>
}

/** Binds the guard to the runtime and to those of the tests. */
export function createServedTests({ runtime, data, folder, ...shared }: ServedTestsOptions): ServedTests {
  const { dir, env, endpoints, cwd = '', guard } = folder
  const runtimes = new Set([runtime])
  let desk: Promise<TestDesk> | undefined
  guard?.bind({
    redact: runtime.redact,
    fail(run, error) {
      for (const each of runtimes) {
        const effect = each.fail(run, error)
        if (effect !== 'inactive') return effect
      }
      return 'inactive'
    },
  })
  const onRuntime = (each: Runtime) => {
    runtimes.add(each)
    return () => void runtimes.delete(each)
  }
  return {
    open() {
      desk ??= import('../regress/test-desk.ts').then(({ openTestDesk }) =>
        openTestDesk({
          ...shared,
          store: runtime.store,
          data: data === 'none' ? undefined : data,
          dir: resolve(cwd, dir),
          env,
          endpoints,
          attribute: guard?.attribute,
          onRuntime,
        }),
      )
      return desk
    },
    close: async () => (await desk)?.close(),
  }
}
