# Counts the project's files by kind, prints the summary and keeps it in report/summary.txt.
# Hidden files and folders that other tools fill are left out. Running it again counts again.
$ErrorActionPreference = 'Stop'
$slot = $env:VIBE_PACKAGE_DIR
$leftOut = @('vibedeps', 'node_modules', 'target')

$counts = @{}
$folders = New-Object System.Collections.Queue
$folders.Enqueue($env:VIBE_PROJECT_ROOT)
while ($folders.Count -gt 0) {
    foreach ($entry in Get-ChildItem -LiteralPath $folders.Dequeue()) {
        if ($entry.Name.StartsWith('.') -or $leftOut -contains $entry.Name) { continue }
        if ($entry.Attributes -band [IO.FileAttributes]::ReparsePoint) { continue }
        if ($entry.PSIsContainer) { $folders.Enqueue($entry.FullName); continue }
        $kind = if ($entry.Extension) { $entry.Extension } else { '(none)' }
        $counts[$kind] = 1 + $counts[$kind]
    }
}

$total = 0
$summary = "Files by kind`n"
foreach ($kind in $counts.GetEnumerator() | Sort-Object @{ Expression = 'Value'; Descending = $true }, Name) {
    $summary += '{0,6}  {1}' -f $kind.Value, $kind.Name + "`n"
    $total += $kind.Value
}
$summary += '{0,6}  in all' -f $total + "`n"

New-Item -ItemType Directory -Force -Path (Join-Path $slot 'report') | Out-Null
[IO.File]::WriteAllText((Join-Path $slot 'report/summary.txt'), $summary)
Write-Output $summary
