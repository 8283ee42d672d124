#!/bin/sh
# hadoop-yarn version | resourcemanager | nodemanager; configuration is read from $YARN_CONF_DIR.
case "$1" in
version) class=org.apache.hadoop.util.VersionInfo ;;
resourcemanager) class=org.apache.hadoop.yarn.server.resourcemanager.ResourceManager ;;
nodemanager) class=org.apache.hadoop.yarn.server.nodemanager.NodeManager ;;
*) echo "hadoop-yarn: version, resourcemanager or nodemanager" >&2; exit 2 ;;
esac
lib=$(dirname "$(readlink -f "$0")")/lib
exec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 --add-opens=java.base/java.lang=ALL-UNNAMED \
    -cp "${YARN_CONF_DIR:-$lib}:$lib/*" "$class"
