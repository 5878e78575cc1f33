# Builds GUIDE.md, the chapters of guide/ in one file with a table of contents.
# Running it again gives the same file.
$ErrorActionPreference = 'Stop'
$slot = $env:VIBE_PACKAGE_DIR

$chapters = @(Get-ChildItem -LiteralPath (Join-Path $slot 'guide') -Filter '*.md' | ForEach-Object { $_.FullName })
[Array]::Sort($chapters, [StringComparer]::Ordinal)

$contents = "# Guide`n`n"
$body = ''
foreach ($chapter in $chapters) {
    $lines = @([IO.File]::ReadAllLines($chapter))
    $contents += '- ' + ($lines[0] -replace '^# ', '') + "`n"
    $body += "`n" + (($lines | ForEach-Object { $_ -replace '^#', '##' }) -join "`n") + "`n"
}
[IO.File]::WriteAllText((Join-Path $slot 'GUIDE.md'), $contents + $body)

Write-Output 'built GUIDE.md'
