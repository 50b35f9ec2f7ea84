// The fields of a StoreModel and of what it is made of (fields.h): types of layers and rooms that know of no wire. A ps
// keeps the model in its arena as this message, too.
#pragma once

#include "muster/store/model/model.h"
#include "muster/transport/messages/fields.h"

namespace muster {

template <>
inline constexpr auto kFieldsOf<RowTable> = FieldList<
    Field<1, &RowTable::partition>, Field<2, &RowTable::initial, &RowInitializer::kind>,
    Field<3, &RowTable::initial, &RowInitializer::center>, Field<4, &RowTable::initial, &RowInitializer::spread>,
    Field<5, &RowTable::initial, &RowInitializer::seed>>();
template <>
inline constexpr auto kFieldsOf<VariableSpec> =
    FieldList<Field<1, &VariableSpec::name>, Field<2, &VariableSpec::dtype>, Field<3, &VariableSpec::shape>,
              Field<4, &VariableSpec::kind>, Field<5, &VariableSpec::table>>();
template <>
inline constexpr auto kFieldsOf<PlacedSlice> =
    FieldList<Field<1, &PlacedSlice::variable>, Field<2, &PlacedSlice::shard>, Field<3, &PlacedSlice::num_shards>,
              Field<4, &PlacedSlice::offset>, Field<5, &PlacedSlice::shape>, Field<6, &PlacedSlice::elements>,
              Field<7, &PlacedSlice::bytes>, Field<8, &PlacedSlice::ps>, Field<9, &PlacedSlice::row_step>>();
template <>
inline constexpr auto kFieldsOf<ClipSpec> = FieldList<Field<1, &ClipSpec::kind>, Field<2, &ClipSpec::limit>>();
template <>
inline constexpr auto kFieldsOf<ScheduleSpec> = FieldList<
    Field<1, &ScheduleSpec::kind>, Field<2, &ScheduleSpec::decay_steps>, Field<3, &ScheduleSpec::decay_rate>,
    Field<4, &ScheduleSpec::end_learning_rate>, Field<5, &ScheduleSpec::power>, Field<6, &ScheduleSpec::cycle>,
    Field<7, &ScheduleSpec::alpha>, Field<8, &ScheduleSpec::warmup_steps>, Field<9, &ScheduleSpec::warmup_from>>();
template <>
inline constexpr auto kFieldsOf<RuleSpec> =
    FieldList<Field<1, &RuleSpec::kind>, Field<2, &RuleSpec::learning_rate>, Field<3, &RuleSpec::momentum>,
              Field<4, &RuleSpec::nesterov>, Field<5, &RuleSpec::beta1>, Field<6, &RuleSpec::beta2>,
              Field<7, &RuleSpec::epsilon>, Field<8, &RuleSpec::weight_decay>, Field<9, &RuleSpec::initial_accumulator>,
              Field<10, &RuleSpec::learning_rate_decay>, Field<11, &RuleSpec::rho>, Field<12, &RuleSpec::centered>,
              Field<13, &RuleSpec::learning_rate_power>, Field<14, &RuleSpec::l1>, Field<15, &RuleSpec::l2>,
              Field<16, &RuleSpec::clip>, Field<17, &RuleSpec::schedule>>();
template <>
inline constexpr auto kFieldsOf<GateSpec> =
    FieldList<Field<1, &GateSpec::kind>, Field<2, &GateSpec::replicas_to_aggregate>,
              Field<3, &GateSpec::total_replicas>, Field<4, &GateSpec::elastic>>();
template <>
inline constexpr auto kFieldsOf<ParameterGroup> =
    FieldList<Field<1, &ParameterGroup::variables>, Field<2, &ParameterGroup::rule>>();
template <>
inline constexpr auto kFieldsOf<OptimizerSpec> =
    FieldList<Field<1, &OptimizerSpec::rule>, Field<2, &OptimizerSpec::groups>, Field<3, &OptimizerSpec::non_finite>>();
template <>
inline constexpr auto kFieldsOf<StoreModel> =
    FieldList<Field<1, &StoreModel::variables>, Field<2, &StoreModel::slices>, Field<3, &StoreModel::optimizer>,
              Field<8, &StoreModel::gate>, Field<9, &StoreModel::clock_limit>, Field<10, &StoreModel::exchanges>,
              Field<11, &StoreModel::ordered>>();

}  // namespace muster
