/// <reference types="vite/client" />

/** Custom properties in `style`. */
declare namespace React {
  interface CSSProperties {
    [name: `--${string}`]: string | number | undefined
  }
}

/** The library without its extensions: its types name neither this file nor this function. */
declare module 'temml/temml.js' {
  const temml: { __renderToMathMLTree(tex: string, options: object): unknown }
  export default temml
}
