/** Formulas as MathML: what they become, and that nothing in one reaches beyond it. */
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, test } from 'vitest'
import { mathml } from './mathml.tsx'

const markup = (tex: string, isBlock = false) => {
  const drawn = mathml(tex, isBlock)
  return drawn === undefined ? undefined : renderToStaticMarkup(drawn)
}

describe('mathml', () => {
  test('a formula is MathML', () => {
    expect(markup('E = mc^2')!.replaceAll(/ class="[^"]*"/gu, '')).toBe(
      '<math><mrow><mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup></mrow></math>',
    )
    expect(markup('\\frac{a}{b}', true)).toMatch(/^<math display="block".*<mfrac><mi>a<\/mi><mi>b<\/mi><\/mfrac>/u)
  })

  test.each([
    '\\int_0^1 x^2\\,dx',
    '\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}',
    '\\sqrt[3]{x} + \\begin{pmatrix}1 & 2\\\\3 & 4\\end{pmatrix}',
    '\\begin{cases} a & x > 0 \\\\ b & \\text{otherwise} \\end{cases}',
    '\\sum_{i=1}^n \\lim_{x \\to 0} \\left( \\frac12 \\right) \\in \\mathbb{R}',
    '\\vec{x} \\cdot \\hat{y} = \\overline{z} \\quad \\underbrace{a+b}_{c}',
    '\\color{red} x \\boxed{y} \\cancel{z} \\tag{1}',
  ])('%s is drawn', (tex) => {
    expect(markup(tex, true)).toMatch(/^<math/u)
  })

  test.each([
    '\\frac{a',
    '\\nosuch',
    '\\href{https://a.example}{x}',
    '\\url{https://a.example}',
    '\\includegraphics{https://a.example/x.png}',
    '\\class{x}{y}',
    '\\id{x}{y}',
    '\\style{position:fixed}{y}',
    '\\data{x=y}{z}',
    '\\def\\a{\\a\\a}\\a',
    '\\newcommand{\\b}{aaaaaaaaaa}'.concat('\\b'.repeat(500)),
    'x'.repeat(4000),
    '\\sqrt{'.repeat(300) + '}'.repeat(300),
  ])('%# is not', (tex) => {
    expect(mathml(tex, false)).toBeUndefined()
  })

  test.each([
    '\\text{<img src=x onerror=alert(1)>}',
    '\\text{</math><script>alert(1)</script>}',
    '\\color{url(https://a.example)}x',
    '\\textcolor{#fff;position:fixed}{x}',
    '\\kern-500em x',
    '\\rule{1000em}{1000em}',
    '\\raisebox{-1000em}{x}',
    '\\hspace{-90em}x',
    '\\genfrac..{1000em}{}ab',
    '\\tag{\\ref{x}} \\label{y}',
  ])('%s reaches nothing outside of it', (tex) => {
    const made = markup(tex) ?? ''
    for (const [, name, attributes] of made.matchAll(/<([a-z0-9]+)([^>]*)>/giu)) {
      expect(name).toMatch(/^m[a-z]+$/u)
      expect(attributes).not.toMatch(/href|src|\bid=|\son|url|position|;base64/u)
      for (const [number] of attributes!.matchAll(/-?[\d.]+(?=em)/gu)) {
        expect(Number(number)).toBeGreaterThanOrEqual(-4)
        expect(Number(number)).toBeLessThanOrEqual(100)
      }
    }
  })
})
