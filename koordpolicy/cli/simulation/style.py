"""How a page of a report looks: on screens wide and narrow, light and dark, and on paper."""

from typing import Final

STYLE: Final = """
:root{--ink:#1c2330;--soft:#566070;--page:#fff;--card:#f5f7fa;--edge:#d9dee6;
--blue:#2563c9;--green:#147a43;--amber:#a35405;--red:#c02b2b;--grey:#606b7b}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#a0a9b8;--page:#12161d;--card:#1b212b;--edge:#343d4b;
--blue:#78a9ff;--green:#5fd08f;--amber:#f0a955;--red:#ff7b7b;--grey:#98a2b3}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1100px;padding:24px;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:17px;margin:32px 0 8px;overflow-wrap:anywhere}
p{margin:6px 0;color:var(--soft);overflow-wrap:anywhere}
.beside{margin:-6px 0 8px;font-size:13px}
.tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:12px;margin:20px 0}
.tile{background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:12px 14px;break-inside:avoid}
.tile b{display:block;font-size:22px;font-variant-numeric:tabular-nums}.tile span{color:var(--soft);font-size:13px}
.charts{display:grid;grid-template-columns:1fr 1fr;gap:16px}
figure{margin:0;background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:12px;break-inside:avoid;min-width:0}
figcaption{font-weight:600;margin-bottom:4px;overflow-wrap:anywhere}svg{width:100%;height:auto;display:block;overflow:visible}
svg text{font:12px system-ui,sans-serif;fill:var(--soft)}.grid{stroke:var(--edge);fill:none}
.line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}.area{fill:currentColor;opacity:.15}
.mark{fill:none;stroke:currentColor;stroke-width:1.5;stroke-dasharray:3 4}svg .number{font-weight:600;fill:var(--red)}
.tip{fill:transparent}.tip:hover{fill:var(--ink);opacity:.08}
.blue{color:var(--blue)}.green{color:var(--green)}.amber{color:var(--amber)}.red{color:var(--red)}.grey{color:var(--grey)}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;margin-top:6px}
.key::before{content:"";display:inline-block;width:14px;border-top:3px solid currentColor;margin-right:6px;vertical-align:middle}
.dashed::before{border-top:2px dashed currentColor}
.wide{overflow-x:auto}.wide:focus-visible{outline:2px solid var(--blue);outline-offset:2px}
.wide+.wide,p+.wide{margin-top:10px}table{border-collapse:collapse;width:100%;font-size:14px}
th,td{text-align:left;padding:6px 10px;border-bottom:1px solid var(--edge);vertical-align:top;overflow-wrap:anywhere;min-width:9em}
th{color:var(--soft);font-weight:600}.n{text-align:right;font-variant-numeric:tabular-nums;min-width:0;overflow-wrap:normal}
td.n{white-space:nowrap}th[scope=row]{width:12em}
code{font-family:ui-monospace,monospace;font-size:.93em}
footer{margin-top:32px;color:var(--soft);font-size:13px;overflow-wrap:anywhere}
@media (max-width:800px){.charts{grid-template-columns:minmax(0,1fr)}}
@media (max-width:600px){body{padding:16px}.tiles{grid-template-columns:1fr 1fr}svg text{font-size:16px}th[scope=row]{width:auto}}
@media print{@page{margin:14mm 12mm}
:root{--ink:#000;--soft:#444;--page:#fff;--card:#fff;--edge:#ccc;--blue:#1f4fa8;--green:#0f6b3a;--amber:#8a4a00;
--red:#a01f1f;--grey:#555}body{max-width:none;padding:0;font-size:12px}h1{font-size:20px}h2{font-size:15px;margin-top:20px}
.tiles{grid-template-columns:repeat(4,1fr);gap:8px;margin:12px 0}.tile{padding:6px 10px}.tile b{font-size:17px}
.tile span,.legend,.beside,footer{font-size:11px}.charts{grid-template-columns:1fr 1fr;gap:10px}figure{padding:8px}
svg text{font-size:16px}table{font-size:11px}th,td{padding:4px 8px;min-width:8em}.n{min-width:0}th.n{overflow-wrap:anywhere;min-width:5.5em}.wide{overflow:visible}.wide,p{break-inside:avoid}
h2,h2+.beside{break-after:avoid}.wide+p{break-before:avoid}thead{display:table-header-group}tr{break-inside:avoid}p{orphans:3;widows:3}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
